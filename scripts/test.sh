#!/usr/bin/env bash
# Everything a change must pass, in order; the last line is: N passed, N failed, N skipped.
#
# Counted are the tests of every crate and of the report page, and one for each check (page types, format, lints, tidy, corpus, fuzz targets, licences, static build). A test that
# prints a line beginning with `skipped:` could not run on this machine and is counted as skipped, as is an
# #[ignore]d one. A failed test fails the run: nothing is run twice. Only a test that measures, and says
# `skipped for noise: NAME: FIGURE` because the machine was not quiet around it, is counted as skipped too; these are
# named at the end, and more than NOISE_MAX of them fail the run. Logs stay in target/test-logs.
#
# The end-to-end tests run the *copy* of the static program that $SONDE_BIN names, because cargo, when it builds
# them, links target/release/sonde anew, dynamically. A crate's tests are one program, and tests/main.rs groups them: `paired`,
# those with a lab that measure nothing and mostly wait, run three at a time; `alone`, which measure or are sensitive to timing, last
# and one at a time; all others first, with the unit tests. Lints and fuzz targets are checked beside `paired`, on what it leaves
# of the CPUs; the page is tested beside the build of the test programs, since two of its tests look at what the program serves.
#
# `scripts/test.sh tests [NAME]` runs the tests without the checks; with NAME those whose name contains it (cargo xtask flakes).
#
# SONDE_TESTS=long (`make test-long`) runs each case of attachment and user, and the tests that take minutes.
set -uo pipefail
cd "$(dirname "$0")/.."
# All groups but `programs`, which `make test-long` asks for too: what is not there is skipped.
WITH=${WITH:-all} scripts/setup.sh || exit 1
. scripts/env.sh
need_rust

logs=target/test-logs
mkdir -p "$logs"
passed=0 failed=0 skipped=0 troubles=() noisy=()
export SONDE_BIN="$PWD/target/static/sonde" RUST_BACKTRACE=1

# A step that hangs is a failure, not a day's wait.
LIMIT_SECONDS=2700
[ "${SONDE_TESTS:-}" != long ] || LIMIT_SECONDS=7200

# So many tests may be skipped for noise; a run with more says too little.
NOISE_MAX=10

what=${1:-all} filter=${2:-}
case "$what $#" in
all\ 0 | tests\ [12]) ;;
*)
    echo "usage: scripts/test.sh [tests [NAME]]" >&2
    exit 64
    ;;
esac

headline() { printf '\n== %s\n' "$*"; }

trouble() {
    failed=$((failed + 1))
    troubles+=("$1")
}

skip() {
    skipped=$((skipped + 1))
    echo "skipped: $1"
}

# said LOG NAME: what a failed test said, without its backtrace: a long output may be read from its end alone.
said() {
    awk -v head="---- $2 stdout ----" '
        $0 == head { on = 1 }
        on && ($0 != head && /^---- .* ----$/ || /^(failures|successes):$/ || /^stack backtrace:$/) { exit }
        on && lines++ < 40' "$1"
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

# beside NAME COMMAND...: starts a check in the background; `joined` counts it.
declare -A beside=()
beside() {
    local name=$1
    shift
    "$@" >"$logs/$name.log" 2>&1 &
    beside[$name]=$!
}
# idly COMMAND...: on CPU time that nothing else wants. The kernel shares the CPUs between sessions first (sched_autogroup), whatever the
# classes of their processes: a session of its own, of the least share.
idly() {
    exec setsid sh -c '{ echo 19 >/proc/self/autogroup; } 2>/dev/null; exec chrt --idle 0 "$@"' sh "$@"
}
trap '[ ${#beside[@]} -eq 0 ] || { kill "${beside[@]}"; kill -- "${beside[@]/#/-}"; } 2>/dev/null' EXIT

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

# tests NAME [CARGO OPTION...] -- [TEST OPTION...]: one cargo test over the workspace, counted by its own tests.
tests() {
    local name=$1 log="$logs/$1.log" began=$SECONDS rc p f s
    local told=()
    shift
    headline "tests: $name"
    # Always --workspace: another selection would unify features differently and build dependencies again.
    # In the foreground, so that a terminal's interrupt reaches the tests.
    timeout --foreground --kill-after=20 "$LIMIT_SECONDS" \
        cargo test --release --workspace --no-fail-fast "$@" --show-output 2>&1 | tee "$log"
    rc=${PIPESTATUS[0]}
    mapfile -t told < <(target/release/xtask tally "$log")
    [ ${#told[@]} -gt 0 ] || trouble "tests: $name: target/release/xtask could not count them ($log)"
    read -r p f s <<<"${told[0]:-0 0 0}"
    noisy+=("${told[@]:1}")
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    if [ "$f" -gt 0 ]; then
        local test
        while read -r test; do
            troubles+=("$test ($log)"$'\n'"$(said "$log" "$test")")
        done < <(sed -n 's/^test \(.*\) \.\.\. FAILED$/\1/p' "$log" | sort -u)
    elif [ "$rc" -ne 0 ]; then
        # It did not compile, a test program crashed, or the time was up: no failed test says so.
        [ "$rc" -ge 124 ] && [ "$rc" -le 137 ] && echo "no end within $LIMIT_SECONDS s" >&2
        trouble "tests: $name: cargo test ended with $rc ($log)"
    fi
    echo "tests: $name: $p passed, $f failed, $s skipped, $((SECONDS - began)) s"
}

# class NAME [TEST OPTION...]: the tests of a class. Its name is no filter beside another: libtest runs what meets one of them.
class() {
    local name=$1 chosen=("$1::")
    shift
    if [ -n "$filter" ]; then
        mapfile -t chosen < <(cargo test --release --workspace --quiet --test '*' -- --list --format terse "$filter" |
            sed -n "s/^\($name::.*\): test$/\1/p")
        [ ${#chosen[@]} -gt 0 ] || return 0
        chosen+=(--exact)
    fi
    tests "$name" --test '*' -- "${chosen[@]}" "$@"
}

# page_tests: the report page's own tests, which `beside` started, counted as node's runner counts them.
page_tests() {
    local log="$logs/page tests.log" rc p f s
    headline 'page tests'
    wait "${beside['page tests']}"
    rc=$?
    unset "beside[page tests]"
    cat "$log"
    read -r p f s < <(awk '/^# pass [0-9]+$/ { p = $3 } /^# (fail|cancelled) [0-9]+$/ { f += $3 } /^# (skipped|todo) [0-9]+$/ { s += $3 }
        END { print p + 0, f + 0, s + 0 }' "$log")
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    if [ "$f" -gt 0 ]; then
        local test
        while read -r test; do
            troubles+=("$test ($log)"$'\n'"$(awk -v head=" - $test" 'on && (/^  \.\.\.$/ || lines++ == 40) { exit }
                on; /^not ok / && substr($0, length($0) - length(head) + 1) == head { on = 1 }' "$log")")
        done < <(sed -n 's/^not ok [0-9]* - //p' "$log" | sort -u)
    elif [ "$rc" -ne 0 ] || [ "$p" -eq 0 ]; then
        trouble "page tests: npm test ended with $rc ($log)"
    fi
    echo "page tests: $p passed, $f failed, $s skipped, $(sed -n 's/^# duration_ms \([0-9]*\).*/\1/p' "$log") ms"
}

# checks: what needs no test program. The page is first, because the crate `report` embeds it.
checks() {
    headline 'page build'
    scripts/build.sh page || trouble 'page build'
    if [ -e web/node_modules/.installed-lock ]; then
        check 'page types' npm --prefix web run --silent types
    else
        skip 'page types: node >= 18.15 and npm are not installed, or npm could not install'
        skip 'page tests: node >= 18.15 and npm are not installed, or npm could not install'
    fi

    if command -v cargo-fmt >/dev/null; then
        check format cargo fmt --all --check
    else
        skip 'format: cargo-fmt is not installed'
    fi
    check 'static build' scripts/build.sh all
    [ ! -e web/node_modules/.installed-lock ] || beside 'page tests' timeout --kill-after=20 "$LIMIT_SECONDS" npm --prefix web test --silent
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
}

# late_checks: what runs beside the paired tests; `joined` counts it. A folder each: cargo locks the one in which it works.
late_checks() {
    if command -v cargo-clippy >/dev/null; then
        beside lints idly cargo clippy --release --workspace --all-targets --quiet --target-dir target/lints -- -D warnings
    else
        skip 'lints: cargo-clippy is not installed'
    fi
    if command -v c++ >/dev/null; then
        beside 'fuzz targets' idly cargo check --manifest-path fuzz/Cargo.toml --release --bins --quiet --target-dir target/fuzz
    else
        skip 'fuzz targets: c++ is not installed (g++)'
    fi
}

# Of several labs at a time one would have it, and keep the others from their CPU.
export SONDE_PRIORITY=usual
rm -f "$logs"/*.log
if [ "$what" = all ]; then
    checks
else
    headline build
    scripts/build.sh all || trouble build
fi
# More at a time than there are CPUs: many of them wait for a timeout.
tests units --lib --bins --test '*' -- --test-threads=4 --skip paired:: --skip alone:: ${filter:+"$filter"}
[ -z "${beside['page tests']:-}" ] || page_tests
tests docs --doc -- ${filter:+"$filter"}
[ "$what" != all ] || late_checks
class paired --test-threads=3
for name in lints 'fuzz targets'; do
    [ -z "${beside[$name]:-}" ] || joined "$name"
done
unset SONDE_PRIORITY
class alone --test-threads=1

# The plain builds above linked it dynamically.
headline 'the static program again'
scripts/build.sh static || trouble 'the last static build'

if [ ${#noisy[@]} -gt "$NOISE_MAX" ]; then
    trouble "noise: ${#noisy[@]} tests were skipped for noise, more than $NOISE_MAX: run it on a quiet machine"
fi
printf '\n'
for line in "${troubles[@]}"; do echo "FAILED $line"; done
for line in "${noisy[@]}"; do echo "$line"; done
[ ${#noisy[@]} -eq 0 ] || echo "${#noisy[@]} tests skipped for noise"
echo "$((SECONDS / 60)) min $((SECONDS % 60)) s"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
