#!/usr/bin/env bash
# Runs the benchmarks of every crate that has a benches/ directory; arguments go to criterion.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/env.sh
need_rust

packages=()
for dir in crates/*/benches; do
    [ -d "$dir" ] || continue
    packages+=(-p "$(sed -n 's/^name = "\(.*\)"/\1/p' "${dir%/benches}/Cargo.toml" | head -n 1)")
done
if [ ${#packages[@]} = 0 ]; then
    echo "no crate has a benches/ directory: nothing to measure" >&2
    exit 1
fi
# --benches alone would also run the unit tests as benchmarks, which do not take criterion's options.
names=()
for file in crates/*/benches/*.rs; do
    names+=(--bench "$(basename "$file" .rs)")
done
exec cargo bench "${packages[@]}" "${names[@]}" -- "$@"
