# Starts Open MPI's launcher with a folder of its own for what its ranks share; the folder goes with the launcher, however that ends.
#
# Model: ranks that are killed leave their part of the shared memory (4 MiB each) and the launcher its session, by names that others'
#        have too. Here they are known by their place. A guard, in a session of its own and without the mark by which an agent ends what
#        it has started, waits for the end of a pipe that the launcher alone holds: Open MPI hands its ranks standard streams alone.
#        Where no such folder can be made the launcher goes without.
# Source: ompi_info --all of Open MPI 4.1 and 5.0 (btl_vader_backing_directory, btl_sm_backing_directory, orte_tmpdir_base).
folder=$(umask 077; mktemp -d /dev/shm/sonde-XXXXXXXX) && mkfifo "$folder/alive" || exec "$@"
FOLDER=$folder setsid env -u SONDE_PROGRAM sh -c '
    trap "" HUP INT TERM
    read -r line <"$FOLDER/alive"
    rm -rf "$FOLDER"
    # A rank that was on its way may have made its part meanwhile.
    sleep 0.3
    rm -rf "$FOLDER"
' </dev/null >/dev/null 2>&1 &
# For reading too: a guard that could not be started keeps nobody waiting.
exec 9<>"$folder/alive"
# Whose it is, should the guard be killed as well: this process, the launcher to be, by its number and when it began.
printf 'sonde-folder/1\n%s %s\n' "$$" "$(sed 's/.*) //' /proc/$$/stat | cut -d ' ' -f 20)" >"$folder/sonde"
export TMPDIR="$folder" OMPI_MCA_orte_tmpdir_base="$folder"
export OMPI_MCA_btl_vader_backing_directory="$folder" OMPI_MCA_btl_sm_backing_directory="$folder"
exec "$@"
