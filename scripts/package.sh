#!/usr/bin/env bash
# Packs what scripts/build.sh built into target/package (or the folder given): a Debian package and a tarball, both with sonde
# (static), sonde-rank (dynamic, since it loads adapters), man pages, completions and the documents. The same programs give the same
# bytes. Adapters of MPI, PVM, UCX and libfabric are built where they are used, for the libraries that are there:
# `sonde doctor --build-adapters`.
set -euo pipefail
cd "$(dirname "$0")/.."
umask 022
to=$(realpath -m "${1:-target/package}")
program=target/static/sonde
for file in "$program" target/release/sonde-rank; do
    if [ ! -x "$file" ]; then
        echo "error: there is no $file to pack: make build" >&2
        exit 1
    fi
done
version=$("$program" --version | sed 's/^sonde //')
machine=$(uname -m)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y Cargo.toml)}
export SOURCE_DATE_EPOCH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$to"

# What both have, below a prefix.
tree=$work/sonde-$version-$machine-linux
share=$tree/share
mkdir -p "$tree/bin" "$share/doc/sonde/docs" "$share/man/man1" "$share/bash-completion/completions" \
    "$share/zsh/vendor-completions" "$share/fish/vendor_completions.d"
install -m 755 "$program" target/release/sonde-rank "$tree/bin"
"$program" man "$share/man/man1"
gzip -9n "$share"/man/man1/*
"$program" completions bash >"$share/bash-completion/completions/sonde"
"$program" completions zsh >"$share/zsh/vendor-completions/_sonde"
"$program" completions fish >"$share/fish/vendor_completions.d/sonde.fish"
cp README.md CHANGELOG.md LICENSE-APACHE LICENSE-MIT "$share/doc/sonde"
cp docs/*.md "$share/doc/sonde/docs"
find "$work" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
tar --sort=name --owner=0 --group=0 --numeric-owner -C "$work" -c "${tree##*/}" | gzip -9n >"$to/${tree##*/}.tar.gz.new"
mv "$to/${tree##*/}.tar.gz.new" "$to/${tree##*/}.tar.gz"
echo "$to/${tree##*/}.tar.gz"

if ! command -v dpkg-deb >/dev/null; then
    echo 'note: no Debian package: there is no dpkg-deb here (package dpkg)' >&2
    exit 0
fi
deb=$work/deb
mkdir -p "$deb/DEBIAN" "$work/debian"
mv "$tree" "$deb/usr"
{
    echo 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/'
    printf 'Upstream-Name: sonde\n\nFiles: *\nCopyright: the authors of sonde\nLicense: Apache-2.0 or Expat\n'
    printf ' The texts are in LICENSE-APACHE and LICENSE-MIT beside this file.\n'
} >"$deb/usr/share/doc/sonde/copyright"
# sonde-rank needs the C library it was linked with, or a newer one.
needs='libc6, libgcc-s1'
if command -v dpkg-shlibdeps >/dev/null; then
    touch "$work/debian/control"
    needs=$(cd "$work" && dpkg-shlibdeps -O "$deb/usr/bin/sonde-rank" 2>/dev/null | sed 's/^shlibs:Depends=//')
fi
cat >"$deb/DEBIAN/control" <<END
Package: sonde
Version: $version
Architecture: $(dpkg --print-architecture)
Maintainer: the authors of sonde <sonde@localhost>
Installed-Size: $(du -sk "$deb/usr" | cut -f 1)
Depends: $needs
Recommends: iproute2, iputils-ping, uidmap, openssh-client
Suggests: openmpi-bin, mpich, pvm
Section: net
Priority: optional
Description: measures and emulates networks of distributed computing
 sonde measures how much of a network's speed reaches distributed programs,
 from the wire through TCP and UDP to PVM, MPI and the NAS kernels, and shows
 what takes the rest. It emulates networks on one machine, so that any
 program can be tried on one.
END
(cd "$deb" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$deb/DEBIAN/md5sums"
find "$deb" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
package=$to/sonde_${version}_$(dpkg --print-architecture).deb
dpkg-deb --root-owner-group -Zxz --build "$deb" "$package.new" >/dev/null
mv "$package.new" "$package"
echo "$package"
