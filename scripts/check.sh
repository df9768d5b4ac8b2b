#!/usr/bin/env bash
# The quick check while working: format, types of the program, its tests and the report page, and the house rules. Stops at the
# first that fails. Under a minute once everything was built; `make test` is what a change must pass.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/env.sh
need_rust
if command -v cargo-fmt >/dev/null; then
    cargo fmt --all --check
else
    echo 'note: format is not checked: cargo-fmt is not installed' >&2
fi
cargo check --release --workspace --all-targets --quiet
if [ -e web/node_modules/.installed-lock ]; then
    npm --prefix web run --silent types
else
    echo 'note: the types of the page are not checked: npm has not installed its tools (make build)' >&2
fi
cargo xtask tidy
echo "checked in $SECONDS s"
