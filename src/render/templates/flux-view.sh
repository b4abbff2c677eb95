#!/bin/bash
# Source this to use Flux in a container of this cluster:  . {{ mount }}/flux-view.sh
{% if view %}
export PATH="$PATH":{{ mount|sh }}/view/bin
{% if python_path %}
flux_gen_python={{ python_path|sh }}
{% else %}
for flux_gen_python in {{ mount|sh }}/view/lib/python3*/site-packages; do :; done
{% endif %}
if [ -n "$PYTHONPATH" ]; then export PYTHONPATH="$PYTHONPATH:$flux_gen_python"; else export PYTHONPATH=$flux_gen_python; fi
if [ -n "$LD_LIBRARY_PATH" ]; then export LD_LIBRARY_PATH="$LD_LIBRARY_PATH":{{ mount|sh }}/view/lib; else export LD_LIBRARY_PATH={{ mount|sh }}/view/lib; fi
{% endif %}
{% for name, value in environment %}
export {{ name }}={{ value|sh }}
{% endfor %}
export fluxsocket=local://{{ mount|sh }}/config/run/flux/local
