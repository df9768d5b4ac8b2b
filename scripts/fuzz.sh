#!/bin/sh
# Fuzzes every parser of bytes from outside, each for SECONDS (60 where none are said): scripts/fuzz.sh [SECONDS] [TARGET...]
#
# Stable Rust will do: the coverage that libFuzzer needs comes from flags of the code generator, and no sanitizer is used, since
# what is fuzzed is safe code: what counts is panics, overflows (checked), time and memory (both bounded below).
# A crash stays in fuzz/artifacts/TARGET; `fuzz/target/TRIPLE/release/TARGET FILE` shows it again. What was found interesting stays in
# fuzz/corpus/TARGET and is where the next time begins. What was mended is kept in fuzz/found/TARGET, which `make test` replays with the
# seeds.
set -eu
cd "$(dirname "$0")/.."
. scripts/env.sh
seconds=${1:-60}
[ $# -gt 0 ] && shift
targets=${*:-$(basename -a -s .rs fuzz/fuzz_targets/*.rs)}
export RUSTFLAGS="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 --cfg fuzzing"
# With a target named, the flags are not those of build scripts.
triple=$(rustc -vV | sed -n 's/^host: //p')
cargo build --manifest-path fuzz/Cargo.toml --release --bins --target "$triple" --target-dir fuzz/target
failed=
for target in $targets; do
    mkdir -p "fuzz/corpus/$target" "fuzz/artifacts/$target"
    echo "fuzz: $target for $seconds s" >&2
    seeds=fuzz/seeds/$target
    [ ! -d "fuzz/found/$target" ] || seeds="$seeds fuzz/found/$target"
    dictionary=fuzz/dictionaries/$target.txt
    [ -f "$dictionary" ] && words="-dict=$dictionary" || words=
    if ! "fuzz/target/$triple/release/$target" "fuzz/corpus/$target" $seeds $words \
        -max_total_time="$seconds" -rss_limit_mb=1024 -timeout=10 -max_len=8192 -print_final_stats=1 \
        -artifact_prefix="fuzz/artifacts/$target/" 2>"fuzz/artifacts/$target.log"; then
        failed="$failed $target"
    fi
    grep -E 'stat::number_of_executed_units|stat::peak_rss_mb|DONE|ERROR|panicked' "fuzz/artifacts/$target.log" || true
done
if [ -n "$failed" ]; then
    echo "fuzz: crashes in$failed: see fuzz/artifacts" >&2
    exit 1
fi
