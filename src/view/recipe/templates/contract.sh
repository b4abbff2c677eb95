#!/bin/bash
# Makes a view of what was installed: libraries, links, names that never change, and one archive.
set -euo pipefail
export LC_ALL=C
umask 022
{% for folder in path %}
PATH={{ folder|sh }}:$PATH
{% endfor %}
software={{ software|sh }}
views={{ views|sh }}
mkdir -p "$software" "$views"

fail() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

# relative FOLDER TARGET: sets reply to the way from the folder to the target, both absolute.
relative() {
    local common=$1 up=
    while [[ $2 != "$common"/* ]]; do
        common=${common%/*}
        up+=../
    done
    reply=$up${2#"$common"/}
}

# Programs and libraries, each followed by a zero byte.
elf_files() {
    local file magic
    while IFS= read -r -d '' file; do
        magic=
        IFS= read -r -N 4 magic < "$file" || true
        if [[ $magic == $'\x7fELF' ]]; then printf '%s\0' "$file"; fi
    done < <(find "$software" -type f -size +3c -print0 2>/dev/null)
}
{% for folder in removed %}
rm -rf -- {{ folder|sh }}
{% endfor %}
find "$software" -depth \( -name '*.la' -o -name __pycache__ \) -exec rm -rf -- {} +
{% if libraries %}

# Libraries of the system, all but those of glibc: an application's image may not have them.
libraries={{ libraries|sh }}/lib
mkdir -p "$libraries"
missing=
while IFS= read -r -d '' file; do
    while read -r name arrow path _; do
        if [[ $arrow != '=>' ]]; then continue; fi
        if [[ $path == not ]]; then
            missing+="$file needs $name, which is nowhere"$'\n'
            continue
        fi
        case $name in
            ld-linux* | libc.so.* | libm.so.* | libdl.so.* | libpthread.so.* | librt.so.* | libresolv.so.* | libutil.so.*) continue ;;
            libanl.so.* | libmvec.so.* | libnss_* | libnsl.so.1 | libthread_db.so.* | libBrokenLocale.so.* | linux-vdso*) continue ;;
        esac
        if [[ $path == /* && $path != "$software"/* && ! -e $libraries/$name ]]; then cp -L -- "$path" "$libraries/$name"; fi
    done < <(ldd "$file" 2>/dev/null || true)
done < <(elf_files)
if [[ -n $missing ]]; then fail "libraries are missing:"$'\n'"$missing"; fi
{% endif %}
{% if strip %}

# Libraries in wheels were changed after linking; strip would break them.
while IFS= read -r -d '' file; do
    case $file in
        *.libs/*) ;;
        *.o | *.a) strip --strip-debug -- "$file" ;;
        *) strip --strip-unneeded -- "$file" ;;
    esac
done < <(elf_files)
{% endif %}
{% if spack %}

# Spack has made the view.
[[ -L $views/view ]] || fail "Spack has made no view at $views/view"
view=$(readlink -f -- "$views/view")
[[ $view == "$views"/._view/* ]] || fail "the view is at $view, not below $views/._view"
{% else %}

# The view: every file of every package as a relative link; of two with one name the first.
view={{ view|sh }}
rm -rf -- "$view"
mkdir -p "$view"
for prefix in {{ prefixes }}; do
    [[ -d $prefix ]] || continue
    (cd "$prefix" && find . -mindepth 1 -type d -printf '%P\0') | (cd "$view" && xargs -0 -r mkdir -p --)
    while IFS= read -r -d '' path; do
        link=$view/$path
        if [[ -e $link || -L $link ]]; then continue; fi
        relative "${link%/*}" "$prefix/$path"
        ln -s -- "$reply" "$link"
    done < <(cd "$prefix" && find . \( -type f -o -type l \) -printf '%P\0' | sort -z)
done
{% endif %}
mkdir -p "$view/share/flux-gen" "$view/bin"
cp /flux-gen/recipe.json "$view/share/flux-gen/recipe.json"

# python and lib64: names that scripts rely on.
for python in "$view"/bin/python3.*; do
    name=${python##*/}
    if [[ $name =~ ^python3\.[0-9]+$ ]]; then
        # A file, not a link: python follows links by their text, which goes wrong below a folder that is itself a link.
        if [[ -L $python ]]; then
            cp -L -- "$python" "$view/bin/.python"
            mv -f -- "$view/bin/.python" "$python"
        fi
        [[ -e $view/bin/python3 ]] || ln -sfn -- "$name" "$view/bin/python3"
        [[ -e $view/bin/python ]] || ln -sfn -- python3 "$view/bin/python"
    fi
done
if [[ ! -e $view/lib64 && -d $view/lib ]]; then ln -s lib "$view/lib64"; fi

# Only relative links.
ln -sfn -- "${view#"$views"/}" "$views/view"
while IFS= read -r -d '' link && IFS= read -r -d '' target; do
    case $target in
        "$software"/* | "$views"/*)
            relative "${link%/*}" "$target"
            ln -sfn -- "$reply" "$link"
            ;;
        /*) printf 'warning: %s leads out of the view, to %s\n' "$link" "$target" ;;
    esac
done < <(find "$software" "$views" -type l -printf '%p\0%l\0')
[[ -x $view/bin/flux ]] || fail "the view has no program bin/flux"
relative "$(dirname -- "$views")" "$views/view"
ln -sfn -- "$reply" "$(dirname -- "$views")/view"

# One archive, the same whatever the order on disk.
tar --sort=name --format=pax --pax-option=delete=atime,delete=ctime --mtime=@0 --owner=0 --group=0 --numeric-owner \
    -C / -cf /flux-gen/tree.tar -- {{ archived }}
