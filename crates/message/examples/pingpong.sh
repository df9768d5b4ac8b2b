#!/bin/sh
# The native engine beside Open MPI and MPICH on this machine, over shared memory and over TCP on loopback, by turns.
# Prints for each 8 B (half the median round trip, ns), 1 MiB and 16 MiB (MB/s): medians of the rounds, and the ratios.
#
#   crates/message/examples/pingpong.sh [ROUNDS]
#
# Needs mpicc.openmpi and mpicc.mpich (libopenmpi-dev, libmpich-dev). All wait by polling.
set -eu
cd "$(dirname "$0")/../../.."
rounds=${1:-7}
cargo build -q --release -p sonde-message --example pingpong
pingpong=target/release/examples/pingpong
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
source=crates/message/examples/pingpong.c
mpicc.openmpi -O2 -o "$work/openmpi" $source
mpicc.mpich -O2 -o "$work/mpich" $source

native() { # TRANSPORT MEETING
    taskset -c 1 $pingpong 1 "$1" "$2" &
    taskset -c 0 $pingpong 0 "$1" "$2"
    wait
}
openmpi() { # BTL
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun.openmpi --oversubscribe --bind-to core \
        --mca pml ob1 --mca btl "self,$1" --mca btl_tcp_if_include lo -np 2 "$work/openmpi" 2>>"$work/errors"
}
mpich() { # UCX_TLS
    UCX_TLS=$1 UCX_NET_DEVICES=lo UCX_POSIX_USE_PROC_LINK=n mpiexec.mpich -bind-to core -n 2 "$work/mpich" 2>>"$work/errors"
}

round=0
while [ $round -lt "$rounds" ]; do
    round=$((round + 1))
    native shm "pingpong.$$.$round" >>"$work/native:shm"
    openmpi vader >>"$work/openmpi:sm"
    mpich self,sysv,posix,cma >>"$work/mpich:sm"
    native tcp "127.0.0.1:$((20000 + ($$ + round) % 10000))" >>"$work/native:tcp"
    openmpi tcp >>"$work/openmpi:tcp"
    mpich self,tcp >>"$work/mpich:tcp"
done

median() { sort -n | awk '{ all[NR] = $1 } END { print NR ? all[int((NR + 1) / 2)] : "-" }'; }
printf '%-12s %10s %12s %13s\n' path '8 B, ns' '1 MiB, MB/s' '16 MiB, MB/s'
for path in native:shm openmpi:sm mpich:sm native:tcp openmpi:tcp mpich:tcp; do
    set -- $(for field in 1 2 3; do cut -d' ' -f$field "$work/$path" | median; done)
    printf '%-12s %10s %12s %13s\n' $path "$1" "$2" "$3"
done
# Ratios of one round each, for what is near in time is alike; then their median. Below 1 is better at 8 B, above 1 elsewhere.
for pair in shm:sm:openmpi shm:sm:mpich tcp:tcp:openmpi tcp:tcp:mpich; do
    IFS=: read -r own other library <<END
$pair
END
    paste -d' ' "$work/native:$own" "$work/$library:$other" >"$work/both"
    set -- $(for field in 1 2 3; do awk "NF == 6 { print \$$field / \$($field + 3) }" "$work/both" | median; done)
    printf 'native:%s / %s:%s  %s %s %s\n' "$own" "$library" "$other" "$1" "$2" "$3"
done
