#!/bin/bash
# Init container: brings the view into the shared volume, once.
set -eu
mount={{ mount|sh }}
cd /
mkdir -p "$mount/config"
chmod 0777 "$mount/config"
for file in flux-view.sh flux-connect.sh load-fluxion.sh; do
    cp "/flux_operator/$file" "$mount/$file"
    chmod 0755 "$mount/$file"
done
{% if view %}
if [ -e "$mount/.view-is-complete" ]; then exit 0; fi
if [ ! -x /opt/view/bin/flux ]; then
    printf 'flux-gen: error: the image %s has no /opt/view/bin/flux: it is no Flux view\n' {{ image|sh }} >&2
    exit 1
fi
rm -rf "$mount/software" "$mount/views" "$mount/view"
mkdir -p "$mount/software" "$mount/views"
[ ! -d /opt/software ] || cp -a /opt/software/. "$mount/software/"
[ ! -d /opt/views ] || cp -a /opt/views/. "$mount/views/"
target=$(readlink -f /opt/view)
case $target in
    /opt/views/*) ln -s "$target" "$mount/view" ;;
    *) cp -a "$target/." "$mount/view/" ;;
esac
: > "$mount/.view-is-complete"
{% endif %}
