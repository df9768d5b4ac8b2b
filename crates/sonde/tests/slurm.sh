#!/bin/sh
# A Slurm cluster on the hosts of a lab, with Debian's packages (22.05), for tests. As the lab's root.
#
#   slurm.sh setup FOLDER HOST...  writes key and configuration into FOLDER, which all hosts see; the first is the controller
#   slurm.sh serve FOLDER          in a host: its daemons, in the foreground; they end with the lab
#   slurm.sh wait COUNT            until so many nodes are idle
#
# Each host has a /run of its own. Slurm's own user is root, and munge is told that the key's owner is: the lab has no other
# users than root's.
set -eu
PATH=$PATH:/usr/sbin:/sbin
task=$1
shift
case $task in
setup)
    folder=$1
    shift
    mkdir -p -m 755 "$folder"
    head -c 128 /dev/urandom >"$folder/munge.key"
    chmod 400 "$folder/munge.key"
    nodes=$(echo "$*" | tr ' ' ',')
    cat >"$folder/slurm.conf" <<CONF
ClusterName=lab
SlurmctldHost=$1
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=/run/munge.socket
CryptoType=crypto/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=/run/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
MpiDefault=none
SwitchType=switch/none
SchedulerType=sched/builtin
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
SlurmdParameters=config_overrides
LaunchParameters=use_interactive_step
InactiveLimit=0
KillWait=5
NodeName=$nodes CPUs=4 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
CONF
    mkdir -p "$folder/state"
    ;;
serve)
    folder=$1
    host=$(hostname)
    mkdir -p /run/slurmd
    # munged wants a key and folders that only its own user writes.
    cp "$folder/munge.key" /run/munge.key
    chmod 400 /run/munge.key
    munged --foreground --force --key-file=/run/munge.key --socket=/run/munge.socket --pid-file=/run/munge.pid \
        --seed-file=/run/munge.seed --log-file=/run/munge.log &
    until [ -S /run/munge.socket ]; do sleep 0.05; done
    export SLURM_CONF="$folder/slurm.conf"
    controller=$(sed -n 's/^SlurmctldHost=//p' "$folder/slurm.conf")
    [ "$host" != "$controller" ] || slurmctld -D >/dev/null 2>"$folder/slurmctld.err" &
    exec slurmd -D -N "$host" >/dev/null 2>"$folder/slurmd.$host.err"
    ;;
wait)
    tries=0
    until [ "$(sinfo -h -t idle -o %D 2>/dev/null)" = "$1" ]; do
        tries=$((tries + 1))
        [ $tries -lt 300 ] || { echo "the nodes are not idle" >&2; sinfo >&2; exit 1; }
        sleep 0.1
    done
    ;;
esac
