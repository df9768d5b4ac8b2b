# The build environment, sourced by the other scripts: a Rust of at least $RUST_MIN first in PATH.
#
# Rust is looked for in PATH, in ~/.cargo/bin and in /usr/lib/rust-*/bin (Ubuntu's versioned packages, which
# put no `cargo` into PATH). The first that is new enough is taken. Nothing is remembered between calls, so
# nothing can be out of date. Sets RUST_BIN (a directory) and RUST_VERSION; both are empty when none was found.

RUST_MIN=1.85

# Static programs and their paths are named in scripts, tests and documents: one target directory.
export CARGO_TARGET_DIR="$PWD/target"

# ip, ethtool and sshd live in sbin, which an ordinary user's PATH lacks on Debian.
case ":$PATH:" in
*:/usr/sbin:*) ;;
*) PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin" ;;
esac

# rust_version DIR: the version of DIR/rustc, or nothing.
rust_version() {
    "$1/rustc" --version 2>/dev/null | sed -n 's/^rustc \([0-9][0-9.]*\).*/\1/p'
}

# at_least HAVE WANT: true when version HAVE is WANT or newer.
at_least() {
    [ -n "$1" ] && [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]
}

# find_rust: sets RUST_BIN, RUST_VERSION and PATH.
find_rust() {
    RUST_BIN='' RUST_VERSION='' RUST_OLD=''
    for rust_dir in "$(dirname "$(command -v cargo 2>/dev/null)" 2>/dev/null)" "${CARGO_HOME:-$HOME/.cargo}/bin" \
        $(ls -d /usr/lib/rust-*/bin 2>/dev/null | sort -rV); do
        [ -x "$rust_dir/cargo" ] && [ -x "$rust_dir/rustc" ] || continue
        rust_found=$(rust_version "$rust_dir")
        if ! at_least "$rust_found" "$RUST_MIN" && [ -x "$rust_dir/rustup" ]; then
            # rustup's default is older, or there is none: its stable toolchain may do.
            rust_found=$(RUSTUP_TOOLCHAIN=stable rust_version "$rust_dir")
            at_least "$rust_found" "$RUST_MIN" && export RUSTUP_TOOLCHAIN=stable
        fi
        if at_least "$rust_found" "$RUST_MIN"; then
            RUST_BIN=$rust_dir RUST_VERSION=$rust_found
            PATH="$rust_dir:$PATH"
            export PATH
            return 0
        fi
        RUST_OLD="$RUST_OLD $rust_dir/rustc${rust_found:+ ($rust_found)}"
    done
    return 1
}

# need_rust: find_rust, or end with the remedy.
need_rust() {
    find_rust || {
        echo "error: no cargo with rustc >= $RUST_MIN found${RUST_OLD:+; too old:$RUST_OLD}; run scripts/setup.sh" >&2
        exit 1
    }
}
