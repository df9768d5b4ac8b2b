# Comes before each script of this folder: bash on h1, in a folder that all hosts see.
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin

# serve [--root] HOST COMMAND...: starts it there until the lab ends; what it says is in HOST.log.
serve() {
    local as=()
    if [ "$1" = --root ]; then as=(--root) && shift; fi
    local host=$1
    shift
    sonde lab exec "${as[@]}" --detach "$host" -- "$@" </dev/null >>"$host.log" 2>&1
}

# eventually COMMAND...: tries until it succeeds, for 30 s.
eventually() {
    local left=300
    until "$@" >/dev/null 2>&1; do
        left=$((left - 1))
        [ $left -gt 0 ] || { echo "not within 30 s: $*" && cat ./*.log; } >&2
        [ $left -gt 0 ] || return 1
        sleep 0.1
    done
}

# listens HOST PORT: whether something does, by TCP.
listens() { (: <"/dev/tcp/$1/$2") 2>/dev/null; }

# random BYTES FILE
random() { head -c "$1" /dev/urandom >"$2"; }
