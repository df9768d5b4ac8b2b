#!/bin/sh
# One file of 64 MiB read or written by fio for two seconds, again and again: `bps N`. For bench/fs.toml.
# Usage: bench-fio.sh read|write ENGINE DEPTH BLOCK DIRECT DIRECTORY
set -eu
op=$1 engine=$2 depth=$3 block=$4 direct=$5 directory=$6
data=$(mktemp -d "$directory/fio.XXXXXX")
trap 'rm -rf "$data"' EXIT
# Written, and read once, before: what is in memory then stays there (invalidate=0).
head -c 67108864 /dev/urandom >"$data/f"
sync "$data/f"
cat "$data/f" >/dev/null
out=$(fio --name=bench --filename="$data/f" --size=64m --rw="$op" --ioengine="$engine" --iodepth="$depth" --bs="$block" \
    --direct="$direct" --invalidate=0 --fsync=0 --end_fsync=0 --fallocate=none --time_based --runtime=2s --thread \
    --output-format=terse --terse-version=3)
# Fields of fio's terse output, version 3: bandwidth of reads, of writes, in KiB/s.
case $op in
read) field=7 ;;
write) field=48 ;;
*) echo "write read or write" >&2; exit 2 ;;
esac
kib=$(printf '%s\n' "$out" | grep '^3;' | cut -d';' -f$field)
echo bps $((kib * 1024 * 8))
