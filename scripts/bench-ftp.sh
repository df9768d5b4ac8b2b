#!/bin/sh
# Ten transfers by curl or lftp at a vsftpd that is started for them: `bps N`. For bench/ftp.toml.
# Usage: bench-ftp.sh curl|lftp get|put BYTES PORT
set -eu
client=$1 op=$2 bytes=$3 port=$4
data=$(mktemp -d /dev/shm/sonde-bench-ftp.XXXXXX)
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$data"' EXIT
mkdir -p "$data/root/in" "$data/empty"
chmod 755 "$data" "$data/root"
chmod 777 "$data/root/in"
head -c "$bytes" /dev/urandom >"$data/f"
cp "$data/f" "$data/root/in/f"
chmod 666 "$data/root/in/f"
me=$(id -un)
cat >"$data/conf" <<END
listen=YES
background=NO
listen_address=127.0.0.1
listen_port=$port
seccomp_sandbox=NO
run_as_launching_user=YES
anonymous_enable=YES
no_anon_password=YES
anon_upload_enable=YES
anon_other_write_enable=YES
write_enable=YES
connect_from_port_20=NO
xferlog_enable=NO
allow_writeable_chroot=YES
anon_root=$data/root
secure_chroot_dir=$data/empty
nopriv_user=$me
ftp_username=$me
END
PATH=$PATH:/usr/sbin
vsftpd "$data/conf" &
server=$!
url=ftp://127.0.0.1:$port
tries=0
until curl -s -o /dev/null "$url/"; do
    tries=$((tries + 1))
    [ "$tries" -lt 50 ] || { echo "vsftpd does not serve at $url" >&2; exit 1; }
    sleep 0.1
done
ten() { for _ in 1 2 3 4 5 6 7 8 9 10; do printf '%s ' "$@"; done; }
case $client-$op in
curl-get) set -- curl -sS $(ten -o /dev/null "$url/in/f") ;;
curl-put) set -- curl -sS $(ten -T "$data/f" "$url/in/f") ;;
lftp-get) set -- lftp -c "open $url; $(ten "cat in/f >/dev/null;")" ;;
lftp-put) set -- lftp -c "open $url; $(ten "put $data/f -o in/f;")" ;;
*) echo "write curl or lftp, then get or put" >&2; exit 2 ;;
esac
begin=$(date +%s%N)
"$@"
end=$(date +%s%N)
echo bps $((bytes * 10 * 8 * 1000000000 / (end - begin)))
