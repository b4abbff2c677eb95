"""Stands for the python bindings of Flux."""
