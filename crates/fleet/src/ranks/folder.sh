# Starts Open MPI's launcher with a folder of its own for what its ranks share; the folder goes with the launcher, however that ends.
#
# Model: ranks that are killed leave their part of the shared memory (4 MiB each) and the launcher its session, by names that others'
#        have too. Here they are known by their place. Two guards, each in a session of its own and without the mark by which an agent
#        ends what it has started, wait for the end of a pipe that the launcher alone holds: Open MPI hands its ranks standard
#        streams alone. Two, since one may be killed while the launcher goes on.
#        Where no such folder can be made the launcher goes without.
# Source: ompi_info --all of Open MPI 4.1 and 5.0 (btl_vader_backing_directory, btl_sm_backing_directory, orte_tmpdir_base).
folder=$(umask 077; mktemp -d /dev/shm/sonde-XXXXXXXX) && mkfifo "$folder/alive" || exec "$@"
# For reading too: guards that could not be started keep nobody waiting.
exec 9<>"$folder/alive" 8<"$folder/alive"
for guard in 1 2; do
    FOLDER=$folder setsid env -u SONDE_PROGRAM sh -c '
        trap "" HUP INT TERM
        read -r line
        rm -rf "$FOLDER"
        # A rank that was on its way may have made its part meanwhile.
        sleep 0.3
        rm -rf "$FOLDER"
    ' <&8 >/dev/null 2>&1 8<&- 9>&- &
done
exec 8<&-
# Whose it is, should the guards be killed as well: this process, the launcher to be, by its number and when it began.
printf 'sonde-folder/1\n%s %s\n' "$$" "$(sed 's/.*) //' /proc/$$/stat | cut -d ' ' -f 20)" >"$folder/sonde"
export TMPDIR="$folder" OMPI_MCA_orte_tmpdir_base="$folder"
export OMPI_MCA_btl_vader_backing_directory="$folder" OMPI_MCA_btl_sm_backing_directory="$folder"
exec "$@"
