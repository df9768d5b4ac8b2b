#!/usr/bin/env bash
# Everything a change must pass, in order; the last line is: N passed, N failed, N skipped.
#
# Counted are the tests of every crate and of the report page, and one for each check (page types, format, lints, tidy, corpus, fuzz targets, licences, static build). A test that
# prints a line beginning with `skipped:` could not run on this machine and is counted as skipped, as is an
# #[ignore]d one. Logs stay in target/test-logs.
#
# The end-to-end tests run the *copy* of the static program that $SONDE_BIN names, because cargo, when it builds
# them, links target/release/sonde anew, dynamically. Those of the lab (lab_*.rs) run last: two at a time those that measure
# nothing, which mostly wait; and one at a time the rest, which is sensitive to timing. Lints and fuzz targets are checked
# beside the former, on what they leave of the CPUs.
#
# SONDE_TESTS=long (`make test-long`) runs each case of attachment and user, and the tests that take minutes.
set -uo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh || exit 1
. scripts/env.sh
need_rust

logs=target/test-logs
mkdir -p "$logs"
passed=0 failed=0 skipped=0 troubles=() unsteady=()
export SONDE_BIN="$PWD/target/static/sonde" RUST_BACKTRACE=1
# A changed snapshot is a failure, not a file to review.
export INSTA_UPDATE=no

# A step that hangs is a failure, not a day's wait.
LIMIT_SECONDS=2700
[ "${SONDE_TESTS:-}" != long ] || LIMIT_SECONDS=7200

# The tests of the lab that measure nothing.
STEADY='^lab_(ends|hosts|input|library|messages|restore|run|shell|slurm|ssh|virtual_machine)$'

# So many failed tests of one kind are tried a second time; where more fail, no busy machine is the cause.
AGAIN_MAX=3

headline() { printf '\n== %s\n' "$*"; }

trouble() {
    failed=$((failed + 1))
    troubles+=("$1")
}

skip() {
    skipped=$((skipped + 1))
    echo "skipped: $1"
}

# check NAME COMMAND...: one check, counted as one.
check() {
    local name=$1 began=$SECONDS
    shift
    headline "$name"
    if "$@"; then
        passed=$((passed + 1))
        echo "$name: ok, $((SECONDS - began)) s"
    else
        trouble "$name: $*"
    fi
}

# beside NAME COMMAND...: starts a check in the background, on CPU time that nothing else wants; `joined` counts it.
declare -A beside=()
beside() {
    local name=$1
    shift
    $idle "$@" >"$logs/$name.log" 2>&1 &
    beside[$name]=$!
}
idle='chrt --idle 0'
$idle true 2>/dev/null || idle='nice -n 19'
trap '[ ${#beside[@]} -eq 0 ] || kill "${beside[@]}" 2>/dev/null' EXIT

# joined NAME: waits for a check that `beside` started, prints what it said and counts it.
joined() {
    local name=$1 rc
    headline "$name"
    wait "${beside[$name]}"
    rc=$?
    unset "beside[$name]"
    cat "$logs/$name.log"
    if [ "$rc" -eq 0 ]; then
        passed=$((passed + 1))
        echo "$name: ok"
    else
        trouble "$name: ended with $rc ($logs/$name.log)"
    fi
}

# tally LOG: "passed failed skipped" of a cargo test log made with --show-output. A passing test is skipped when
# its own section has a line that begins with `skipped:`, whatever else it prints.
tally() {
    awk '
        /^successes:$/ { in_successes = 1; in_test = 0 }
        /^failures:$/ || /^running [0-9]+ tests?$/ { in_successes = 0; in_test = 0 }
        /^---- .* stdout ----$/ { in_test = in_successes; said = 0 }
        /^skipped:/ && in_test && !said { said = 1; said_skipped++ }
        /^test result: / {
            for (i = 1; i < NF; i++) {
                if ($(i + 1) ~ /^passed;/) ok += $i
                if ($(i + 1) ~ /^failed;/) bad += $i
                if ($(i + 1) ~ /^ignored;/) ignored += $i
            }
            in_successes = 0; in_test = 0
        }
        END { print ok - said_skipped, bad + 0, ignored + said_skipped }' "$1"
}

# again LOG: runs what failed once more, each test alone, and leaves in $mended how many passed. They are named at the end:
# what passes only at the second try has met a busy machine, or is wrong now and then.
again() {
    local log=$1 of name
    mended=0
    while IFS=$'\t' read -r of name; do
        headline "once more, alone: $name"
        # shellcheck disable=SC2086  # options
        timeout --foreground --kill-after=20 "$LIMIT_SECONDS" cargo test --release --workspace --no-fail-fast \
            $of -- --exact "$name" --test-threads=1 2>&1 | tee "$log.again"
        if [ "${PIPESTATUS[0]}" -eq 0 ] && grep -q '^test .* ok$' "$log.again"; then
            mended=$((mended + 1))
            unsteady+=("$name")
        fi
    done < <(awk '
        $1 == "Running" && $2 == "unittests" { of = "--lib --bins" }
        $1 == "Running" && $2 ~ /^tests\// {
            target = $3
            sub(/.*\//, "", target); sub(/-[0-9a-f]+\)$/, "", target)
            of = "--test " target
        }
        /^test .* \.\.\. FAILED$/ { print of "\t" $2 }' "$log" | sort -u)
}

# tests NAME [CARGO OPTION...] -- [TEST OPTION...]: one cargo test over the workspace, counted by its own tests.
tests() {
    local name=$1 log="$logs/$1.log" began=$SECONDS rc p f s
    shift
    headline "tests: $name"
    # Always --workspace: another selection would unify features differently and build dependencies again.
    # In the foreground, so that a terminal's interrupt reaches the tests.
    timeout --foreground --kill-after=20 "$LIMIT_SECONDS" \
        cargo test --release --workspace --no-fail-fast "$@" --show-output 2>&1 | tee "$log"
    rc=${PIPESTATUS[0]}
    read -r p f s < <(tally "$log")
    if [ "$f" -gt 0 ] && [ "$f" -le "$AGAIN_MAX" ]; then
        again "$log"
        p=$((p + mended)) f=$((f - mended))
        # No crash hides behind the failed tests: cargo tells of programs that ended otherwise than by a failed test.
        [ "$f" -eq 0 ] && ! grep -q "process didn't exit successfully" "$log" && rc=0
    fi
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    if [ "$f" -gt 0 ]; then
        troubles+=("$(sed -n 's/^test \(.*\) \.\.\. FAILED$/\1/p' "$log" | sort -u | paste -sd ' ') ($log)")
    elif [ "$rc" -ne 0 ]; then
        # It did not compile, a test program crashed, or the time was up: no failed test says so.
        [ "$rc" -ge 124 ] && [ "$rc" -le 137 ] && echo "no end within $LIMIT_SECONDS s" >&2
        trouble "tests: $name: cargo test ended with $rc ($log)"
    fi
    echo "tests: $name: $p passed, $f failed, $s skipped, $((SECONDS - began)) s"
}

# targets PATTERN: the options that select the integration tests whose name matches it, each once. Where a crate has
# tests/main.rs, its tests are one program of the crate's name.
targets() {
    local folder file
    for folder in crates/*/tests xtask/tests; do
        if [ -e "$folder/main.rs" ]; then
            basename "${folder%/tests}"
            continue
        fi
        for file in "$folder"/*.rs "$folder"/*/main.rs; do
            [ ! -e "$file" ] || basename "${file%/main.rs}" .rs
        done
    done | sort -u | grep -E -- "$1" | sed 's/^/--test /'
}

# page_tests: the report page's own tests, counted as node's runner counts them.
page_tests() {
    local log="$logs/page.log" began=$SECONDS rc p f s
    headline 'page tests'
    timeout --foreground --kill-after=20 "$LIMIT_SECONDS" npm --prefix web test --silent 2>&1 | tee "$log"
    rc=${PIPESTATUS[0]}
    read -r p f s < <(awk '/^# pass [0-9]+$/ { p = $3 } /^# (fail|cancelled) [0-9]+$/ { f += $3 } /^# (skipped|todo) [0-9]+$/ { s += $3 }
        END { print p + 0, f + 0, s + 0 }' "$log")
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    if [ "$f" -gt 0 ]; then
        troubles+=("$(sed -n 's/^not ok [0-9]* - //p' "$log" | paste -sd ';') ($log)")
    elif [ "$rc" -ne 0 ] || [ "$p" -eq 0 ]; then
        trouble "page tests: npm test ended with $rc ($log)"
    fi
    echo "page tests: $p passed, $f failed, $s skipped, $((SECONDS - began)) s"
}

# First, because the crate `report` embeds the page.
headline 'page build'
scripts/build.sh page || trouble 'page build'
if [ -e web/node_modules/.installed-lock ]; then
    check 'page types' npm --prefix web run --silent types
    page_tests
else
    skip 'page types: node >= 18.15 and npm are not installed, or npm could not install'
    skip 'page tests: node >= 18.15 and npm are not installed, or npm could not install'
fi

if command -v cargo-fmt >/dev/null; then
    check format cargo fmt --all --check
else
    skip 'format: cargo-fmt is not installed'
fi
check 'static build' scripts/build.sh
check tidy target/release/xtask tidy
if command -v xz >/dev/null; then
    check corpus target/release/xtask corpus
else
    skip 'corpus: xz is not installed (xz-utils)'
fi
if command -v cargo-deny >/dev/null; then
    check licences cargo deny --offline check licenses bans sources
else
    headline licences
    skip 'licences: cargo-deny is not installed (cargo install cargo-deny)'
fi

# shellcheck disable=SC2046  # options
tests units --lib --bins $(targets '^' | grep -v -- '--test lab_') --
tests docs --doc --
# A folder each: cargo locks the one in which it works.
if command -v cargo-clippy >/dev/null; then
    beside lints cargo clippy --release --workspace --all-targets --quiet --target-dir target/lints -- -D warnings
else
    skip 'lints: cargo-clippy is not installed'
fi
if command -v c++ >/dev/null; then
    beside 'fuzz targets' cargo check --manifest-path fuzz/Cargo.toml --release --bins --quiet --target-dir target/fuzz
else
    skip 'fuzz targets: c++ is not installed (g++)'
fi
# shellcheck disable=SC2046
tests steady $(targets "$STEADY") -- --test-threads=2
[ -z "${beside[lints]:-}" ] || joined lints
[ -z "${beside['fuzz targets']:-}" ] || joined 'fuzz targets'
# shellcheck disable=SC2046
tests lab $(comm -23 <(targets '^lab_') <(targets "$STEADY")) -- --test-threads=1

# The plain builds above linked it dynamically.
headline 'the static program again'
scripts/build.sh static || trouble 'the last static build'

printf '\n'
for line in "${troubles[@]}"; do echo "FAILED $line"; done
for name in "${unsteady[@]}"; do echo "passed at the second try only: $name"; done
echo "$((SECONDS / 60)) min $((SECONDS % 60)) s"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
