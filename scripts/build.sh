#!/usr/bin/env bash
# Builds everything in release, then the command `sonde` as a static program.
#
# The static build is last: a plain `cargo build` or `cargo test` links target/release/sonde dynamically again.
# crt-static is given to the last crate only, so that all dependencies are shared with the plain build (and
# procedural macros refuse it as RUSTFLAGS). A copy stays in target/static/sonde, which cargo never overwrites.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/env.sh
need_rust

[ "${1:-}" = static ] || cargo build --release --workspace
cargo rustc --release -p sonde-cli --bin sonde -- -C target-feature=+crt-static

# A static program has no INTERP segment, which would name a dynamic loader.
if LC_ALL=C readelf -lW target/release/sonde | grep -q INTERP; then
    echo "error: target/release/sonde is not static: it names a dynamic loader; is libc.a (libc6-dev) installed?" >&2
    exit 1
fi
mkdir -p target/static
if ! cmp -s target/release/sonde target/static/sonde; then
    # By rename: a running copy keeps its file.
    cp target/release/sonde target/static/sonde.new
    mv target/static/sonde.new target/static/sonde
fi
echo "target/release/sonde: static, $(($(wc -c <target/release/sonde) / 1024)) KiB"
