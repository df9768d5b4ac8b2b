# Keeps PVM's first daemon on this host. However this ends, the daemons of all hosts and their folders are gone soon after.
#
# Model: daemon and guards are in sessions of their own and bear no mark of who started them. The guards wait for the end of a pipe
#        that this shell alone holds; there are two, since one may be killed while this shell goes on. Then each has the daemon
#        end, which tells the others, and sweeps every host where one was started: what has this machine's id in its environment,
#        or is the shell that is about to start a daemon with it, is killed, and its folder taken away. A daemon whose first one
#        was killed would stay for minutes. It sweeps twice, for a start that was on its way to its host the first time.
#        Processes without the id, as those of any other machine, are never touched.
# In the environment, beside PVM's own variables: NAME, what other hosts call this one; ROUTES, for each host a line of its
# name and of what starts a command there.
set -u
umask 077
unset SONDE_PROGRAM PVMHOSTFILE
mkdir "$PVM_TMP" && cd "$PVM_TMP" || exit 71
printf '%s\n' "$ROUTES" >routes
cat >rsh <<END
#!/bin/sh
name=\$1
shift
while :; do
    case \$1 in
    -l) shift 2 ;;
    -*) shift ;;
    *) break ;;
    esac
done
route=\$(sed -n "s/^\$name //p" '$PVM_TMP/routes')
echo "\$route" >>'$PVM_TMP/started'
exec \$route "umask 077; mkdir -p '$PVM_TMP'; export PVM_TMP='$PVM_TMP' PVM_VMID='$PVM_VMID' PVM_ROOT='$PVM_ROOT' PVM_ARCH='$PVM_ARCH' PVM_DPATH='$PVM_DPATH' ${PVM_ALLOW_ROOT:+PVM_ALLOW_ROOT=1}; \$*"
END
chmod 700 rsh
export PVM_RSH="$PVM_TMP/rsh"
# What sweeps has not the id in its own environment, and [P] is no P in its own words. The shell of `rsh` has the id in quotes, and
# in its words alone until it starts the daemon.
sweep="for p in \$(grep -lzE \"^PVM_VMID=$PVM_VMID\$|[P]VM_VMID='$PVM_VMID'\" /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null); do p=\${p#/proc/}; kill -9 \${p%/*}; done"
mkfifo alive
# For reading too: guards that could not be started keep nobody waiting.
exec 9<>alive 8<alive
for guard in 1 2; do
    FOLDER=$PVM_TMP SWEEP=$sweep setsid env -u PVM_VMID -u PVM_TMP sh -c '
        trap "" HUP INT TERM
        read -r line
        exec </dev/null
        sleep 0.1
        daemon=$(cat daemon)
        kill -TERM "$daemon"
        tries=0
        while kill -0 "$daemon" && [ $tries -lt 40 ]; do tries=$((tries + 1)); sleep 0.05; done
        for pause in 0.3 0; do
            eval "$SWEEP"
            # The end of the pipe is a shell of its own, which alone can wait for what it started.
            sort -u started | { while read -r route; do timeout 20 $route "$SWEEP; rm -rf $FOLDER" </dev/null & done; wait; }
            sleep $pause
        done
        cd / && rm -rf "$FOLDER"
    ' <&8 >/dev/null 2>&1 8<&- 9>&- &
done
exec 8<&-
# Whose it is, should the guards be killed as well: this shell, by its number and when it began.
printf 'sonde-folder/1\n%s %s\n' "$$" "$(sed 's/.*) //' /proc/$$/stat | cut -d ' ' -f 20)" >sonde
setsid sh -c 'echo $$ >daemon; exec "$PVM_DPATH" "-n$NAME"' </dev/null >said 2>&1 9>&- &
wait
