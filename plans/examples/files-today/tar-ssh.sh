#!/bin/sh
# A file from h1 to h2 by tar through ssh. See shared.sh.
. "$(dirname "$0")/shared.sh"
need tar tar
serves_ssh
packed() {
    tar -C "$DIR" -cf - source | ssh -F "$DIR/ssh" h2 "tar -xOf - >$DIR/copy"
}
moved tar-ssh packed
