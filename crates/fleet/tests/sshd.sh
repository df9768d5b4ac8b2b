#!/bin/sh
# OpenSSH servers on the hosts of a lab, with keys and configuration of their own, for tests.
#
#   sshd.sh keys FOLDER HOST...   makes keys, and FOLDER/ssh_config by which `ssh -F` reaches the hosts (named as /etc/hosts
#                                 names them); FOLDER must be one that all hosts see, below /var/tmp for example
#   sshd.sh serve FOLDER [OPTION...]  in a host: the server in the foreground, with more options of sshd; it
#                                 ends with the connection that started it, or the lab
#
# As the lab's root the server is as Debian's own, with PAM, at port 22. As an ordinary user it serves that user alone,
# without PAM, at port 2222.
set -eu
task=$1 folder=$2
shift 2
id=$(id -u)
if [ "$id" = 0 ]; then port=22 pam=yes; else port=2222 pam=no; fi

case $task in
keys)
    mkdir -p -m 700 "$folder"
    ssh-keygen -q -t ed25519 -N '' -f "$folder/host"
    ssh-keygen -q -t ed25519 -N '' -f "$folder/user"
    cp "$folder/user.pub" "$folder/authorized_keys"
    for host in "$@"; do
        if [ "$port" = 22 ]; then name=$host; else name="[$host]:$port"; fi
        echo "$name $(cut -d ' ' -f 1,2 "$folder/host.pub")"
    done >"$folder/known_hosts"
    cat >"$folder/ssh_config" <<EOF
Host *
    Port $port
    IdentityFile $folder/user
    IdentitiesOnly yes
    UserKnownHostsFile $folder/known_hosts
    GlobalKnownHostsFile /dev/null
    StrictHostKeyChecking yes
EOF
    cat >"$folder/sshd_config" <<EOF
Port $port
HostKey $folder/host
AuthorizedKeysFile $folder/authorized_keys
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin yes
StrictModes no
UsePAM $pam
PidFile none
PrintMotd no
EOF
    ;;
serve)
    if [ "$id" = 0 ]; then
        # Where privileges are separated; /run is each host's own.
        mkdir -p /run/sshd
        # A log-in runs what is in root's home: none of that is to wait, or to be killed in the middle.
        mountpoint -q /root || mount -t tmpfs tmpfs /root
    fi
    PATH=$PATH:/usr/sbin:/sbin
    exec "$(command -v sshd)" -D -e -f "$folder/sshd_config" "$@"
    ;;
esac
