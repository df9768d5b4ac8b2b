#!/bin/sh
# A file from h1 to h2 by scp. See shared.sh.
. "$(dirname "$0")/shared.sh"
need scp openssh-client
serves_ssh
moved scp scp -q -F "$DIR/ssh" "$DIR/source" "h2:$DIR/copy"
