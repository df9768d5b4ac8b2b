#!/bin/sh
# A file by a client of NFS version 3 at a nfs-ganesha that is started for it, with its files in memory: `bps N`, of sonde also `memory_kib N`.
# For bench/nfs.toml. In namespaces of its own (root), which end with it.
# Usage: bench-nfs.sh sonde|nfs-cp get|put BYTES OUTSTANDING TRANSFER
set -eu
if [ "${1:-}" != within ]; then
    cargo build -q --release -p sonde-workload --example nfs
    exec unshare -nmpf --mount-proc --kill-child sh "$0" within "$@"
fi
client=$2 op=$3 bytes=$4 outstanding=$5 transfer=$6
PATH=$PATH:/usr/sbin
mount --make-rprivate /
mount -t tmpfs none /run
mount -t tmpfs none /dev/shm
[ ! -d /var/lib/nfs ] || mount -t tmpfs none /var/lib/nfs
ip link set lo up
ip addr add 10.9.0.1/24 dev lo
mkdir -p /run/rpcbind /run/ganesha /dev/shm/recover
cat >/dev/shm/conf <<END
NFS_CORE_PARAM { Bind_addr=10.9.0.1; NFS_Port=2049; MNT_Port=20048; Enable_NLM=false; Enable_RQUOTA=false; Protocols=3; fsid_device=true; }
NFSV4 { Grace_Period=5; Lease_Lifetime=5; RecoveryBackend=fs; RecoveryRoot=/dev/shm/recover; Only_Numeric_Owners=true; }
NFS_KRB5 { Active_krb5=false; }
EXPORT_DEFAULTS { Squash=None; SecType=sys,none; Transports=TCP; Access_Type=RW; }
MEM { Inode_Size=1048576; }
EXPORT { Export_Id=2; Path=/mem; Pseudo=/mem; FSAL { Name=MEM; } }
END
rpcbind -f -w -h 10.9.0.1 &
sleep 0.3
ganesha.nfsd -F -f /dev/shm/conf -L /dev/shm/log -p /run/ganesha.pid &
tries=0
until (: | timeout 1 bash -c 'exec 3<>/dev/tcp/10.9.0.1/2049') 2>/dev/null; do
    tries=$((tries + 1))
    [ "$tries" -lt 100 ] || { tail -5 /dev/shm/log >&2; exit 1; }
    sleep 0.1
done
sleep 0.5
ours() { target/release/examples/nfs "$1" 10.9.0.1 20048 2049 /mem "$2" "$bytes" "$outstanding" "$transfer"; }
[ "$op" = put ] || ours put f >/dev/null
url=nfs://10.9.0.1/mem
copy() { dd if="$1" of="$2" bs=1M count=$((bytes >> 20)) 2>/dev/null; }
# What its file in memory takes, which ours has not, is measured after it and taken off.
case $client-$op in
sonde-*) ours "$op" f; exit ;;
nfs-cp-get)
    set -- nfs-cp "$url/f?version=3" /dev/shm/g
    taken() { copy /dev/zero /dev/shm/h; }
    # What it is copied from takes its time too.
    given() { copy /dev/zero /dev/null; }
    ;;
nfs-cp-put)
    head -c "$bytes" /dev/zero >/dev/shm/f
    set -- nfs-cp /dev/shm/f "$url/g?version=3"
    taken() { copy /dev/shm/f /dev/null; }
    given() { :; }
    ;;
*) echo "write sonde or nfs-cp, then get or put" >&2; exit 2 ;;
esac
begin=$(date +%s%N)
"$@" >/dev/null
copied=$(date +%s%N)
taken
taken=$(date +%s%N)
given
given=$(date +%s%N)
echo bps $((bytes * 8 * 1000000000 / (copied - begin - (taken - copied) + (given - taken))))
