#!/bin/bash
# Runs Flux in {{ comment }}: the leader on index 0, followers on the others.
# shellcheck disable=SC1091,SC2154,SC2034,SC2016 # names come from, and go to, common.sh and hooks in the same ConfigMap
. /flux_operator/common.sh
trap flux_gen_on_exit EXIT
flux_gen_home
if [ "$flux_gen_strict" = 1 ]; then set -eE -o pipefail; fi
flux_gen_hook /flux_operator/{{ hooks }}-init.sh
{% if leader_here %}
flux_gen_role=follower
if [ "$HOSTNAME" = "$mainHost" ]; then flux_gen_role=leader; fi
{% else %}
flux_gen_role=follower
{% endif %}
workdir=$PWD
flux_gen_paths
flux_gen_helpers
{% if cores %}
export cores={{ cores }}
{% endif %}
export STATE_DIR="$configroot/var/lib/flux"
export FLUX_OUTPUT_DIR={{ logs|sh }}
mkdir -p "$configroot/run/flux" "$STATE_DIR" "$configroot/curve" "$configroot/etc/flux/system"
# Only batch jobs write there, and the root file system may be read-only.
mkdir -p "$FLUX_OUTPUT_DIR" || flux_gen_say "there is no folder $FLUX_OUTPUT_DIR for the output of jobs"
ln -sfn /etc/flux-gen "$configroot/etc/flux/config"
for flux_gen_file in R hostlist; do
    ln -sfn "/etc/flux-gen/$flux_gen_file" "$configroot/etc/flux/system/$flux_gen_file"
done

# Prefix of every flux command; a hook may set its own.
asFlux=
{% if user %}
flux_gen_name={{ user.name|sh }}
flux_gen_uid={{ user.uid }}
flux_gen_gid={{ user.uid }}
flux_gen_userhome=/home/$flux_gen_name
flux_gen_known=
while IFS=: read -r flux_gen_n _ flux_gen_u flux_gen_g _ flux_gen_h _; do
    if [ "$flux_gen_n" = "$flux_gen_name" ]; then
        flux_gen_known=1
        flux_gen_uid=$flux_gen_u
        flux_gen_gid=$flux_gen_g
        flux_gen_userhome=$flux_gen_h
    fi
done < /etc/passwd
flux_gen_me=$(id -u)
if [ "$flux_gen_me" != "$flux_gen_uid" ]; then
    if [ "$flux_gen_me" = 0 ]; then
        if [ -z "$flux_gen_known" ]; then
            printf '%s:x:%s:%s::%s:/bin/bash\n' "$flux_gen_name" "$flux_gen_uid" "$flux_gen_gid" "$flux_gen_userhome" >> /etc/passwd
            printf '%s:x:%s:\n' "$flux_gen_name" "$flux_gen_gid" >> /etc/group
        fi
        mkdir -p "$flux_gen_userhome"
        chown "$flux_gen_uid:$flux_gen_gid" "$flux_gen_userhome" "$configroot/run/flux" "$STATE_DIR" "$FLUX_OUTPUT_DIR"
    fi
    if [ "$flux_gen_me" = 0 ] && command -v setpriv >/dev/null; then
        asFlux="setpriv --reuid=$flux_gen_uid --regid=$flux_gen_gid --clear-groups env HOME=$flux_gen_userhome USER=$flux_gen_name"
    elif command -v sudo >/dev/null; then
        asFlux="sudo -u $flux_gen_name -E PYTHONPATH=$PYTHONPATH PATH=$PATH HOME=$flux_gen_userhome"
    else
        flux_gen_fail 126 "cannot become user $flux_gen_name: the image has neither setpriv (for root) nor sudo"
    fi
fi
{% endif %}
flux_gen_hook /flux_operator/{{ hooks }}-preCommand.sh
flux_gen_hook /flux_operator/{{ hooks }}-pre.sh
if [ "$flux_gen_role" = leader ]; then
    flux_gen_hook /flux_operator/{{ hooks }}-brokerPre.sh
else
    flux_gen_hook /flux_operator/{{ hooks }}-workerPre.sh
fi

# Flux refuses a certificate that others may read, and a Secret volume cannot be private to one user: a copy in memory can.
{% if public_key %}
flux_gen_found=
while read -r flux_gen_key _ flux_gen_value || [ -n "$flux_gen_key" ]; do
    if [ "$flux_gen_key" = public-key ]; then flux_gen_found=$flux_gen_value; fi
done < /etc/flux-gen-curve/curve.cert
if [ "$flux_gen_found" != {{ public_key_quoted|sh }} ]; then
    flux_gen_fail 78 "wrong certificate: the Secret" {{ secret|sh }} "has the public key $flux_gen_found, this bundle was made for" {{ public_key_quoted|sh }}
fi
{% endif %}
rm -f /run/flux-gen/curve.cert
(umask 0377 && cat /etc/flux-gen-curve/curve.cert > /run/flux-gen/curve.cert)
ln -sfn /run/flux-gen/curve.cert "$configroot/curve/curve.cert"
{% if user %}
if [ "$flux_gen_me" = 0 ]; then chown "$flux_gen_uid:$flux_gen_gid" /run/flux-gen/curve.cert; fi
{% endif %}

# Runs the broker with the given arguments added; its exit code is left in flux_gen_code.
# shellcheck disable=SC2120 # followers add none
flux_gen_broker() {
{% if timed %}
    flux_gen_now
    flux_gen_start=$flux_gen_clock
{% endif %}
    # shellcheck disable=SC2086 # asFlux is a list of words
    flux_gen_run $asFlux {{ broker_command }} "$@"
{% if timed %}
    flux_gen_result=$flux_gen_code
    flux_gen_elapsed fluxstart "$flux_gen_start"
    flux_gen_code=$flux_gen_result
{% endif %}
}
{% if leader_here %}

flux_gen_lead() {
    set --
{% if elastic %}
    read -r flux_gen_quorum < /etc/flux-gen-size/quorum
    set -- "$@" {{ option }}"-Sbroker.quorum=$flux_gen_quorum"
    read -r flux_gen_nodes < /etc/flux-gen-size/nodes
{% endif %}
{% if archive %}
    if [ -e {{ archive|sh }} ]; then
        flux_gen_say "restoring from" {{ archive|sh }}
        set -- "$@" {{ option }}{{ ("-Scontent.restore=" ~ archive)|sh }}
    fi
    rm -f {{ archive_new|sh }} "$configroot/program-status"
    set -- "$@" {{ option }}{{ ("-Scontent.dump=" ~ archive_new)|sh }}
{% endif %}
{% if batch %}
    flux_gen_batch={{ batch.before|sh }}{% if elastic %}"$flux_gen_nodes "{% endif %}{{ batch.after|sh }}
    set -- "$@" {{ program }} sh -c "$flux_gen_batch"
{% elif program %}
{% if splits_nodes %}
    # shellcheck disable=SC2086 # a list of words
{% endif %}
    set -- "$@" {{ program }}
{% endif %}
    flux_gen_broker "$@"{% if batch and quiet %} > /dev/null{% endif %}

    flux_gen_status=$flux_gen_code
{% if archive %}
    flux_gen_save
{% endif %}
}
{% endif %}
{% if archive and leader_here %}

# The broker writes the new archive beside the old one at its end; only a good end replaces the old one.
flux_gen_save() {
    flux_gen_program=
    if [ -e "$configroot/program-status" ]; then read -r flux_gen_program < "$configroot/program-status"; fi
    if [ "$flux_gen_status" = 0 ] && [ -e {{ archive_new|sh }} ]; then
        mv -f {{ archive_new|sh }} {{ archive|sh }} || flux_gen_status=74
    elif [ "$flux_gen_status" = 0 ] || [ "$flux_gen_program" = 0 ]; then
        flux_gen_status=74
    fi
    if [ "$flux_gen_status" = 74 ]; then
        printf 'flux-gen: error: the program ended well, but %s could not be saved\n' {{ archive|sh }} >&2
    fi
}
{% endif %}

# A host that answers nothing must not hold us for minutes.
flux_gen_reachable() {
    # shellcheck disable=SC2016 # for the inner shell
    timeout 2 bash -c 'exec 3<>"/dev/tcp/$0/$1"' "$1" "$2" 2>/dev/null
}
command -v timeout >/dev/null || flux_gen_fail 127 "the image has no timeout program (coreutils)"

# A broker that connects too early may never connect at all, so a follower waits for its parent's port: every 0.1 s, after
# 5 s more and more slowly up to 2 s, each a little differently.
flux_gen_wait_for_parent() {
{% if leader_here %}
    flux_gen_rank=$JOB_COMPLETION_INDEX
    flux_gen_parent={{ name|sh }}-$(({{ parent }})).{{ headless|sh }}
    flux_gen_port={{ port }}
{% else %}
    flux_gen_rank=$JOB_COMPLETION_INDEX
    flux_gen_parent={{ lead.address|sh }}
    flux_gen_port={{ lead.port }}
{% endif %}
    flux_gen_tries=0
    flux_gen_delay=100
    until flux_gen_reachable "$flux_gen_parent" "$flux_gen_port"; do
        flux_gen_tries=$((flux_gen_tries + 1))
        if [ "$flux_gen_tries" -gt 50 ] && [ "$flux_gen_delay" -lt 2000 ]; then
            flux_gen_delay=$((flux_gen_delay * 5 / 4))
            flux_gen_say "waiting for $flux_gen_parent port $flux_gen_port"
        fi
        flux_gen_sleep "$(printf '0.%03d' $((flux_gen_rank * 37 % 50)))"
        flux_gen_sleep "$(printf '%d.%03d' $((flux_gen_delay / 1000)) $((flux_gen_delay % 1000)))"
    done
}

# A broker that fails at once, again and again, has a cause that waiting does not mend.
flux_gen_follow() {
    flux_gen_failures=0
    while :; do
        flux_gen_wait_for_parent
        flux_gen_since=$SECONDS
        # shellcheck disable=SC2119
        flux_gen_broker
        if [ "$flux_gen_code" = 0 ]; then
{% if follower_exits %}
            return 0
{% else %}
            flux_gen_failures=0
            flux_gen_post=/flux_operator/{{ hooks }}-post.sh
            flux_gen_say "the broker ended in order; waiting for a leader or the end of the Job"
{% endif %}
        else
            printf 'flux-gen: the broker ended with exit code %s\n' "$flux_gen_code" >&2
            if [ $((SECONDS - flux_gen_since)) -lt 10 ]; then flux_gen_failures=$((flux_gen_failures + 1)); else flux_gen_failures=1; fi
            if [ "$flux_gen_failures" -ge 5 ]; then
                flux_gen_status=$flux_gen_code
                return 0
            fi
        fi
        flux_gen_sleep 1
    done
}

flux_gen_say "this is the $flux_gen_role, $HOSTNAME"
{% if leader_here %}
if [ "$flux_gen_role" = leader ]; then flux_gen_lead; else flux_gen_follow; fi
{% else %}
flux_gen_follow
{% endif %}
flux_gen_post=
flux_gen_hook /flux_operator/{{ hooks }}-post.sh loud
: > "$viewbase/flux-operator-complete.txt"
exit "$flux_gen_status"
