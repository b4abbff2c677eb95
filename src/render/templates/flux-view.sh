#!/bin/bash
# Source this to use Flux in a container of this cluster:  . {{ mount }}/flux-view.sh
{% if view %}
case ":$PATH:" in
    *:{{ mount|sh }}/view/bin:*) ;;
    *) export PATH="$PATH":{{ mount|sh }}/view/bin ;;
esac
{% if python_path %}
flux_gen_python={{ python_path|sh }}
{% else %}
for flux_gen_python in {{ mount|sh }}/view/lib/python3*/site-packages; do :; done
{% endif %}
case ":$PYTHONPATH:" in
    *:"$flux_gen_python":*) ;;
    ::) export PYTHONPATH=$flux_gen_python ;;
    *) export PYTHONPATH="$PYTHONPATH:$flux_gen_python" ;;
esac
case ":$LD_LIBRARY_PATH:" in
    *:{{ mount|sh }}/view/lib:*) ;;
    ::) export LD_LIBRARY_PATH={{ mount|sh }}/view/lib ;;
    *) export LD_LIBRARY_PATH="$LD_LIBRARY_PATH":{{ mount|sh }}/view/lib ;;
esac
{% endif %}
{% for name, value in environment %}
export {{ name }}={{ value|sh }}
{% endfor %}
export fluxsocket=local://{{ mount|sh }}/config/run/flux/local
