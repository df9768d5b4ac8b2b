#!/bin/sh
# A file from nfs-ganesha on h2 to libnfs's nfs-cp on h1, by NFS version 4 over TCP. Start the lab as root and with --root. Ganesha keeps it in
# its memory, which holds 1 MiB of a file: SIZE is that where nothing is said. It gets there by version 3, since writes of libnfs 4.0 by
# version 4 fail from 4 KiB on. See shared.sh.
SIZE=${SIZE:-1048576}
. "$(dirname "$0")/shared.sh"
need ganesha.nfsd nfs-ganesha
need rpcbind rpcbind
need nfs-cp libnfs-utils
if [ "$SIZE" -gt 1048576 ]; then
    echo "SIZE is $SIZE: ganesha's memory holds 1048576 bytes of a file" >&2
    exit 1
fi
cat >"$DIR/ganesha.conf" <<END
NFS_CORE_PARAM { NFS_Port = 2049; MNT_Port = 20048; Enable_NLM = false; Enable_RQUOTA = false; Protocols = 3, 4; fsid_device = true; }
NFSV4 { Grace_Period = 1; Lease_Lifetime = 1; RecoveryBackend = fs; RecoveryRoot = $DIR/state; Only_Numeric_Owners = true; }
NFS_KRB5 { Active_krb5 = false; }
MEM { Inode_Size = 1048576; }
EXPORT_DEFAULTS { Squash = None; SecType = sys, none; Transports = TCP; Access_Type = RW; }
EXPORT { Export_Id = 1; Path = /mem; Pseudo = /mem; FSAL { Name = MEM; } }
END
mkdir "$DIR/state"
cat >"$DIR/serve.sh" <<END
mkdir -p /run/rpcbind /run/ganesha
$(command -v rpcbind) -f -w -h 10.9.0.2 &
sleep 0.3
exec $(command -v ganesha.nfsd) -F -f $DIR/ganesha.conf -L $DIR/ganesha.log -p /run/ganesha.pid
END
sonde lab exec --root --detach h2 -- sh "$DIR/serve.sh"
waits_for "$DIR/ganesha.log" 'NFS SERVER INITIALIZED'
# Clients are let in when its grace period is over.
sleep 2
nfs-cp "$DIR/source" 'nfs://10.9.0.2/mem/source?version=3&nfsport=2049&mountport=20048' >"$DIR/put"
fetched() {
    nfs-cp 'nfs://10.9.0.2/mem/source?version=4' "$DIR/copy" >"$DIR/said"
}
moved nfs4-ganesha fetched
