# By sh, as root, in a mount namespace of its own: ROOT is an empty folder, DEB the package. Installs it on a root that has a shell,
# the C library and nothing else, and runs there what comes on standard input.
set -eu
machine=$(uname -m)-linux-gnu
mount -t tmpfs tmpfs "$ROOT"
cd "$ROOT"
mkdir -p usr/bin usr/sbin usr/lib usr/lib64 etc proc sys dev tmp run root var/lib/dpkg/info var/lib/dpkg/updates var/lib/dpkg/triggers
for folder in bin sbin lib lib64; do ln -s usr/$folder $folder; done
cp "$(command -v dash)" usr/bin/sh
# The libraries of the C library and of the compiler are what the package depends on.
for package in libc6 libgcc-s1; do
    dpkg-query -W -f='Package: ${Package}\nStatus: install ok installed\nPriority: required\nSection: libs\nMaintainer: none <none@localhost>\nArchitecture: ${Architecture}\nVersion: ${Version}\nDescription: library\n\n' $package
    for library in $(dpkg-query -L $package | grep '\.so'); do
        [ -d "$library" ] || { mkdir -p ".${library%/*}" && cp -a "$library" ".$library"; }
    done
done >var/lib/dpkg/status
dpkg --root="$ROOT" --log=/dev/null -i "$DEB" >&2
# It goes without a trace.
dpkg --root="$ROOT" --log=/dev/null --verify sonde >&2
mount -t proc proc proc
mount --rbind /dev dev
mount --rbind /sys sys
mkdir old
pivot_root . old
cd /
LD_LIBRARY_PATH=/old/lib/$machine /old/bin/umount -l /old
PATH=/usr/sbin:/usr/bin HOME=/root
export PATH HOME
unset SONDE_BIN SONDE_RANK SONDE_ADAPTERS
exec /bin/sh -eu
