# Started beside a build: when flux-gen ends without saying so, whatever the reason, ends the command that it was running and
# removes what the build has left. Reads lines: "run PID", "idle", "done"; the end of its input means that flux-gen is gone.
running=
while IFS= read -r line; do
    case $line in
        "run "*) running=${line#run } ;;
        idle) running= ;;
        done) exit 0 ;;
    esac
done
if [ -n "$running" ]; then
    # No `--` before the group: dash's kill knows none and would do nothing.
    kill -TERM "-$running"
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        kill -0 "-$running" || break
        sleep 0.2
    done
    kill -KILL "-$running"
fi
