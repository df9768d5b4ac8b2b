#!/bin/sh
# `sonde assess` beside other work, its figures held against those of three quiet runs of the same command: lines of a name and a number, which
# bench-ways.mjs works out, for bench/ways.toml.
# The quiet runs are made where there are none yet, and kept in $SCRATCH for all ways.
# Usage: bench-ways.sh quiet|loops|build|cgroup root|user SONDE
set -eu
way=$1 who=$2 sonde=$3
cd "$(dirname "$0")/.."
name=$(sha256sum "$sonde" | cut -c1-12)-$who
dir=${SCRATCH:-target/bench}/ways/$name
mkdir -p "$dir"
busy= group=
ends() {
    [ -z "$busy" ] || kill -- $busy 2>/dev/null || :
    [ -z "$group" ] || { echo $$ >"${group%/*}/cgroup.procs"; rmdir "$group"; }
}
trap ends EXIT
trap 'exit 130' INT TERM

# The user of the tests, where this is root.
as=
case $who-$(id -u) in
root-0) ;;
user-0)
    mkdir -p "$dir/runs"
    chown 2001:2001 "$dir/runs"
    as="setpriv --reuid 2001 --regid 2001 --clear-groups env HOME=$dir/runs"
    ;;
root-*)
    echo "bench-ways.sh: this is not root" >&2
    exit 77
    ;;
esac

# assess FILE: what may be inconclusive (3) and what is above a bound (1) are figures too.
assess() {
    code=0
    $as "$sonde" assess --json --out "$dir/runs" >"$1.part" 2>"$1.err" || code=$?
    case $code in
    0 | 1 | 3) mv "$1.part" "$1" ;;
    *) tail -3 "$1.err" >&2; exit 1 ;;
    esac
}

for number in 1 2 3; do
    [ -s "$dir/quiet-$number.json" ] || assess "$dir/quiet-$number.json"
done
case $way in
quiet) ;;
loops)
    for number in 1 2; do
        setsid sh -c 'while :; do :; done' &
        busy="$busy -$!"
    done
    ;;
build)
    setsid sh -c "while :; do rm -rf '$dir/build'; cargo build -q --release --target-dir '$dir/build' -p sonde-stats; done" >/dev/null 2>&1 &
    busy=-$!
    ;;
cgroup)
    # 60 % of all CPUs: of each 100 ms.
    quota=$(($(nproc) * 60000))
    if [ -d /sys/fs/cgroup/cpu ]; then
        group=/sys/fs/cgroup/cpu/sonde-ways
        mkdir -p $group
        echo $quota >$group/cpu.cfs_quota_us
    else
        group=/sys/fs/cgroup/sonde-ways
        mkdir -p $group
        echo "$quota 100000" >$group/cpu.max
    fi
    echo $$ >$group/cgroup.procs
    ;;
*)
    echo "bench-ways.sh: there is no way \`$way\`: quiet, loops, build or cgroup" >&2
    exit 64
    ;;
esac
assess "$dir/$way.json"
node scripts/bench-ways.mjs "$dir/quiet-1.json" "$dir/quiet-2.json" "$dir/quiet-3.json" "$dir/$way.json"
