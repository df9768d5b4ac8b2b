# An sshd on h2, and by it ssh, scp, sftp and rsync from h1. With ROOT as the lab's root, where owners are kept as well.
umask 077
mkdir keys tree
ssh-keygen -q -t ed25519 -N '' -f keys/host
ssh-keygen -q -t ed25519 -N '' -f keys/me
cp keys/me.pub keys/authorized
as=() prepare=true user=$(id -un)
if [ -n "${ROOT:-}" ]; then as=(--root) prepare='mkdir -p /run/sshd' user=root; fi
serve "${as[@]}" h2 sh -c "$prepare; exec $(command -v sshd) -D -e -f /dev/null -p 2222 -h $PWD/keys/host -o PidFile=none -o StrictModes=no \
    -o UsePAM=no -o AuthorizedKeysFile=$PWD/keys/authorized -o 'Subsystem=sftp internal-sftp'"
eventually listens h2 2222
options=(-i "$PWD/keys/me" -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR -o BatchMode=yes)
ssh -p 2222 "${options[@]}" "$user@h2" 'hostname; exit 5' || echo "code $?"
random 5000000 file
scp -q -P 2222 "${options[@]}" file "$user@h2:$PWD/there" && cmp file there && echo copied
scp -q -O -P 2222 "${options[@]}" "$user@h2:$PWD/there" back && cmp file back && echo copied
echo "put file $PWD/third" | sftp -q -b - -P 2222 "${options[@]}" "$user@h2" >/dev/null && cmp file third && echo copied
for number in 1 2 3; do random 300000 tree/$number; done
[ -z "${ROOT:-}" ] || chown 1234:1235 tree/3
rsync -a -e "ssh -p 2222 ${options[*]}" tree/ "$user@h2:$PWD/synced/" && diff -r tree synced && echo synced
[ -z "${ROOT:-}" ] || stat -c 'owner %u:%g' synced/3
