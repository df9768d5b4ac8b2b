#!/usr/bin/env bash
# Builds the report page, then the command and the ranks' program in release, then the command `sonde` as a static program, then the adapters.
# With `static` as its argument the last two steps alone, with `page` the first; with `all` what tests need beside: xtask and their programs.
#
# The page needs node and npm; cargo embeds web/dist/page.html where it is. Without them sonde is built without it, and says
# so when a page is asked for. npm installs what web/package-lock.json pins, and only when that file has changed; no
# package's own install script runs.
#
# The static build is last: a plain `cargo build` or `cargo test` links target/release/sonde dynamically again.
# crt-static is given to the last crate only, so that all dependencies are shared with the plain build (and
# procedural macros refuse it as RUSTFLAGS). A copy stays in target/static/sonde, which cargo never overwrites.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/env.sh
need_rust

# build_page: web/dist/page.html; where it cannot be built, says why and goes on.
build_page() {
    if ! node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 18 || (a === 18 && b >= 15) ? 0 : 1)' 2>/dev/null \
        || ! command -v npm >/dev/null; then
        echo 'note: the report page is left out: it is built by node >= 18.15 with npm (make setup)' >&2
        return 0
    fi
    if ! cmp -s web/package-lock.json web/node_modules/.installed-lock; then
        # Playwright drives the system's browser and must fetch none.
        if ! PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 npm --prefix web ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2; then
            echo 'note: the report page is left out: npm could not install its tools (see above)' >&2
            return 0
        fi
        cp web/package-lock.json web/node_modules/.installed-lock
    fi
    npm --prefix web run --silent build
}

if [ "${1:-}" != static ]; then
    build_page
    [ "${1:-}" = page ] && exit 0
    # The ranks' program, target/release/sonde-rank, is dynamic, since it loads libraries. Both together have the features that
    # the whole workspace has, so that nothing is built twice.
    what=(-p sonde-cli -p sonde-rank)
    [ "${1:-}" != all ] || what=(--workspace)
    cargo build --release "${what[@]}"
fi
cargo rustc --release -p sonde-cli --bin sonde -- -C target-feature=+crt-static

# A static program has no INTERP segment, which would name a dynamic loader.
if LC_ALL=C readelf -lW target/release/sonde | grep -q INTERP; then
    echo "error: target/release/sonde is not static: it names a dynamic loader; is libc.a (libc6-dev) installed?" >&2
    exit 1
fi
# keep FILE: a copy in target/static. By rename: a running copy keeps its file.
keep() {
    local copy=target/static/${1#target/release/}
    cmp -s "$1" "$copy" && return
    mkdir -p "${copy%/*}"
    cp "$1" "$copy.new"
    mv "$copy.new" "$copy"
}
keep target/release/sonde
echo "target/release/sonde: static, $(($(wc -c <target/release/sonde) / 1024)) KiB"

# The adapters of the libraries whose compiler and headers are here, for the tests and for sonde-rank beside them; the rest
# is named with its package. What is up to date is not built again.
target/release/sonde doctor --build-adapters --adapters target/release/adapters >&2
# With what it looks for beside itself: a host of the lab sees that folder.
for file in target/release/sonde-rank target/release/adapters/*.so; do
    [ ! -e "$file" ] || keep "$file"
done
