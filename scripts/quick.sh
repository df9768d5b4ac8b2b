#!/usr/bin/env bash
# The tests that a change is likely to break, in minutes: `cargo xtask quick` says which. BASE names the revision since which
# changes count; without it that is where the branch left main. Arguments go to it, e.g. --print.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/env.sh
need_rust
cargo xtask quick "$@"
echo "tested in $SECONDS s"
