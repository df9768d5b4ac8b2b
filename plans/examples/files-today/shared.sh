# What the scripts of this folder share; sourced by each, and nothing by itself. They run in a lab of two hosts:
#
#   sonde lab run --hosts 2 --network ethernet-100 -- sh plans/examples/files-today/scp.sh
#
# SIZE bytes (16 MiB) of noise go from h1 to h2 or back through a program as it is installed. One line is printed: the bytes, the time
# from the client's start to its end, with the log-in, and the rate. A copy that differs ends the script with 1, and a program that is
# missing with 77, whose package is named.
set -eu
PATH=$PATH:/usr/sbin:/sbin
SIZE=${SIZE:-16777216}
# What all hosts see; their /tmp and /run may be their own.
DIR=$(mktemp -d /var/tmp/sonde-files-today-XXXXXX)
trap 'rm -rf "$DIR"' EXIT
trap 'exit 130' INT TERM

# need PROGRAM PACKAGE
need() {
    command -v "$1" >/dev/null && return
    echo "$1 is not installed: install the package $2" >&2
    exit 77
}

# waits_for FILE WORDS: until a server has said so, ten seconds at most.
waits_for() {
    tries=0
    until grep -q "$2" "$1" 2>/dev/null; do
        tries=$((tries + 1))
        if [ "$tries" -gt 100 ]; then
            echo "the server does not start: $(tail -n 3 "$1" 2>/dev/null)" >&2
            exit 1
        fi
        sleep 0.1
    done
}

# serves_ssh: an sshd on h2 that lets in this user alone, and $DIR/ssh by which `ssh -F` reaches it.
serves_ssh() {
    need sshd openssh-server
    need ssh openssh-client
    need ssh-keygen openssh-client
    ssh-keygen -q -t ed25519 -N '' -f "$DIR/host"
    ssh-keygen -q -t ed25519 -N '' -f "$DIR/me"
    cp "$DIR/me.pub" "$DIR/authorized"
    cat >"$DIR/ssh" <<END
Host h2
    Port 2222
    IdentityFile $DIR/me
    IdentitiesOnly yes
    StrictHostKeyChecking no
    UserKnownHostsFile /dev/null
    LogLevel ERROR
    BatchMode yes
END
    sonde lab exec --detach h2 -- sh -c "exec $(command -v sshd) -D -e -f /dev/null -p 2222 -h $DIR/host -o UsePAM=no -o StrictModes=no \
        -o PidFile=none -o Subsystem=\"sftp internal-sftp\" -o AuthorizedKeysFile=$DIR/authorized 2>$DIR/sshd.log"
    waits_for "$DIR/sshd.log" listening
}

# moved NAME COMMAND...: times what moves $DIR/source to $DIR/copy.
moved() {
    name=$1
    shift
    began=$(date +%s%N)
    "$@"
    took=$(($(date +%s%N) - began))
    is_equal "$DIR/source" "$DIR/copy"
    awk -v name="$name" -v bytes="$SIZE" -v ns="$took" \
        'BEGIN { printf "%s: %d bytes in %.3f s, %.3f Mb/s\n", name, bytes, ns / 1e9, 8e3 * bytes / ns }'
}

# is_equal FILE FILE: by their hashes.
is_equal() {
    if [ "$(sha256sum <"$1")" != "$(sha256sum <"$2")" ]; then
        echo "the copy differs" >&2
        exit 1
    fi
}

need sha256sum coreutils
head -c "$SIZE" /dev/urandom >"$DIR/source"
