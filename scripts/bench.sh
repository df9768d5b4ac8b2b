#!/usr/bin/env bash
# Runs the benches of bench/ by `cargo xtask bench`, which takes the arguments: names, --list, --write, --budget TIME, --rounds N.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/env.sh
need_rust
exec cargo run --release --quiet --package xtask -- bench "$@"
