"""The python part of the program that looks like flux."""

print("hello from python")
