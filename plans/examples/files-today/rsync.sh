#!/bin/sh
# A file from h1 to h2 by rsync through ssh, as a whole: there is no older copy. See shared.sh.
. "$(dirname "$0")/shared.sh"
need rsync rsync
serves_ssh
moved rsync rsync -W -e "ssh -F $DIR/ssh" "$DIR/source" "h2:$DIR/copy"
