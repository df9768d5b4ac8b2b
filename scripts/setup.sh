#!/usr/bin/env bash
# Installs what is missing for building sonde and for running its lab and its tests, by package name.
#
# Without more it installs the base: what builds sonde and runs a lab. WITH names groups that come to it, e.g.
# WITH=mpi,ssh, or WITH=all, which is all but `programs`; what is missing of the other groups is named, and not installed:
#   mpi      Open MPI and MPICH             slurm    Slurm, in a cluster of the lab
#   pvm      PVM                            peers    programs to compare with and to look with
#   fabric   UCX and libfabric              browser  Chromium, for the tests of the report page
#   ssh      OpenSSH                        programs ordinary servers and clients, for `make test-long` (WITH=all,programs)
#
# Works on Debian 12 and 13 and on Ubuntu 22.04 and 24.04, as root or as a user with sudo; elsewhere it says what
# to install. Prints one line for each thing: found, installed or missing (and what goes without it). Runs no
# `apt-get update` and nothing as root while nothing is missing. Never removes a package, never starts a service.
# Exit: 0 sonde can be built; 1 it cannot, and the last line says what to do; 64 WITH names a group that does not exist.
set -uo pipefail
cd "$(dirname "$0")/.."
. scripts/env.sh
WITH=${WITH:-}

# Group, package, the test that finds it, and what goes without it. `needed` is what nothing can be built without.
PACKAGES='
needed  gcc             has_command cc                    | nothing can be built
needed  libc6-dev       has_static_libc                   | nothing can be built
needed  make            has_command make                  | use scripts/*.sh instead of make
needed  git             has_command git                   | no commits
needed  pkg-config      has_command pkg-config            | crates that wrap C libraries
needed  ca-certificates has_file /etc/ssl/certs/ca-certificates.crt | cargo cannot fetch crates
base    iproute2        has_command ip                    | looking into lab hosts by hand; some end-to-end tests
base    iputils-ping    has_command ping                  | the end-to-end tests that ping across the lab
base    uidmap          has_command newuidmap             | lab hosts with several user ids, for an ordinary user
base    nodejs          has_node                          | the HTML report: the page is left out of the program
base    npm             has_command npm                   | the HTML report: the page is left out of the program
mpi     openmpi-bin     has_mpirun                        | the test of --testbed mpirun inside the lab
mpi     libopenmpi-dev  has_command mpicc.openmpi         | paths of Open MPI; its programs counted and placed
mpi     mpich           has_command mpiexec.mpich         | paths of MPICH; its programs in the lab
mpi     libmpich-dev    has_mpich_headers                 | paths of MPICH; its programs counted and placed
pvm     pvm             has_file /usr/lib/pvm3/lib/pvmd   | paths of PVM; its programs in the lab
pvm     pvm-dev         has_file /usr/include/pvm3.h      | paths of PVM
fabric  libucx-dev      has_file /usr/include/ucp/api/ucp.h | paths of UCX
fabric  libfabric-dev   has_file /usr/include/rdma/fabric.h | paths of libfabric
ssh     openssh-server  has_command sshd                  | the ssh testbed inside the lab
ssh     openssh-client  has_command ssh                   | real hosts (--testbed hosts:...)
slurm   slurmctld       has_command slurmctld             | the test of a Slurm cluster inside the lab
slurm   slurmd          has_command slurmd                | the test of a Slurm cluster inside the lab
slurm   slurm-client    has_command srun                  | the test of a Slurm cluster inside the lab; --testbed slurm
slurm   munge           has_command munged                | the test of a Slurm cluster inside the lab
peers   iperf3          has_command iperf3                | the comparison of stream rates with iperf3
peers   sockperf        has_command sockperf              | the comparison of latencies with sockperf
peers   netpipe-tcp     has_command NPtcp                 | the comparison with NetPIPE
peers   netpipe-openmpi has_command NPopenmpi             | the comparison with NetPIPE above Open MPI
peers   netpipe-mpich2  has_command NPmpich2              | the comparison with NetPIPE above MPICH
peers   netpipe-pvm     has_command NPpvm                 | the comparison with NetPIPE above PVM
peers   hpcc            has_command hpcc                  | the test of hpcc inside the lab
peers   ethtool         has_command ethtool               | the check that offloads are off
peers   tcpdump         has_command tcpdump               | the check of what is on the emulated wire
peers   strace          has_command strace                | the check of which system calls a path makes
peers   procps          has_command pgrep                 | the check that the lab leaves no process behind
peers   xz-utils        has_command xz                    | the comparison with frozen runs (cargo xtask corpus)
peers   libnfs-utils    has_command nfs-cp                | the comparison with the NFS client of libnfs
peers   nfs-ganesha     has_file /usr/bin/ganesha.nfsd    | the comparison with nfs-ganesha
peers   nfs-ganesha-mem has_file /usr/share/doc/nfs-ganesha-mem | the same
peers   rpcbind         has_file /usr/sbin/rpcbind        | the same
peers   vsftpd          has_command vsftpd                | the comparison with vsftpd, and its long test in the lab
peers   curl            has_command curl                  | the comparison with its FTP, and the long tests of nginx and vsftpd in the lab
peers   lftp            has_command lftp                  | the comparison with lftp
peers   dnsmasq-base    has_command dnsmasq               | the test of a DHCP relay in the lab; the long test of dnsmasq
peers   isc-dhcp-client has_command dhclient              | the test of a DHCP relay in the lab
peers   fio             has_command fio                   | the comparison of files of a file system with fio
browser chromium        has_browser                       | the tests of the HTML report in a browser
programs rsync          has_command rsync                 | the long test of rsync in the lab
programs nginx-light    has_command nginx                 | the long test of nginx in the lab
programs redis-server   has_command redis-server          | the long test of redis in the lab
programs postgresql     has_postgres                      | the long test of PostgreSQL in the lab
programs memcached      has_command memcached             | the long test of memcached in the lab
programs traceroute     has_command traceroute            | the long test of traceroute in the lab
programs mtr-tiny       has_command mtr                   | the long test of mtr in the lab
programs python3        has_command python3               | the long tests of python and of servers that it asks in the lab
'
GROUPS_KNOWN='mpi pvm fabric ssh slurm peers browser programs'
# What `all` leaves out: the long tests alone want it.
GROUPS_LONG='programs'
# Package and service, of packages that would start one at the next boot: the lab runs its own, inside its hosts.
SERVICES='openssh-server:ssh nginx-light:nginx redis-server:redis-server postgresql:postgresql memcached:memcached vsftpd:vsftpd'

has_command() { command -v "$1" >/dev/null 2>&1; }
has_file() { [ -e "$1" ]; }
# The page's tools need node 18.15.
has_node() {
    has_command node && node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 18 || (a === 18 && b >= 15) ? 0 : 1)'
}
has_browser() { has_command chromium || has_command chromium-browser || has_command google-chrome; }
# Debian has the server's programs in a folder of its version, which is in nobody's PATH.
has_postgres() { compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || has_command initdb; }
# Any of them: Open MPI's or MPICH's.
has_mpirun() { has_command mpirun || has_command mpiexec; }
# The package mpich has its compiler, and libmpich-dev what that compiles.
has_mpich_headers() { has_command mpicc.mpich && echo '#include <mpi.h>' | mpicc.mpich -E -x c - >/dev/null 2>&1; }
# gcc prints the bare name when it does not find the file.
has_static_libc() { has_command gcc && [ "$(gcc -print-file-name=libc.a)" != libc.a ]; }
say() { printf '%-10s %s\n' "$1" "$2"; }

# each_package GROUP...: lines "package<TAB>test<TAB>loss" of these groups.
each_package() {
    local IFS='|'
    printf '%s' "$PACKAGES" | grep -E "^($*) " | sed -nE 's/^[^ ]+ +([^ ]+) +([^|]*[^| ]) *\| *(.*)$/\1\t\2\t\3/p'
}

# split_groups GROUP...: adds to `found` and `absent` (package names).
split_groups() {
    local package test loss
    while IFS=$'\t' read -r package test loss; do
        # shellcheck disable=SC2086  # the test is a function and its argument
        if $test; then found+=("$package"); else absent+=("$package"); fi
    done < <(each_package "$@")
}

# become_root: sets `root` to the command prefix that runs as root; fails when there is none.
become_root() {
    root=()
    [ "$(id -u)" = 0 ] && return 0
    if ! has_command sudo; then
        no_root='not root, and sudo is not installed'
        return 1
    fi
    # With no terminal sudo may not ask for a password.
    if [ -t 0 ]; then root=(sudo); else root=(sudo -n); fi
    "${root[@]}" true 2>/dev/null </dev/null || { [ -t 0 ] && sudo true; } || {
        no_root='not root, and sudo refused'
        return 1
    }
}

# apt_ready: root and fresh package lists, once; every failure is remembered in `no_root`.
apt_ready() {
    [ -n "${apt_state:-}" ] && return "$apt_state"
    apt_state=1
    no_root=''
    if ! has_command apt-get; then
        no_root='no apt-get here: use your own package manager'
        return 1
    fi
    become_root || return 1
    say updating 'package lists (apt-get update)'
    "${root[@]}" apt-get update -qq || say note 'apt-get update failed; going on with the old lists'
    apt_state=0
}

# Packages may not start services while they are installed: policy-rc.d is how Debian is told so.
POLICY=/usr/sbin/policy-rc.d
forbid_services() {
    [ -e "$POLICY" ] && return
    policy_written=1
    printf '#!/bin/sh\nexit 101\n' | "${root[@]}" tee "$POLICY" >/dev/null && "${root[@]}" chmod 755 "$POLICY"
}
allow_services() {
    [ -n "${policy_written:-}" ] && "${root[@]}" rm -f "$POLICY"
    policy_written=''
}
trap allow_services EXIT

# apt_install PACKAGE...: installs without removing anything.
apt_install() {
    apt_ready || return 1
    forbid_services
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends --no-remove "$@" \
        >"$log" 2>&1 </dev/null
    local rc=$?
    allow_services
    return $rc
}

# services_stay_off PACKAGE...: a newly installed server would start at the next boot.
services_stay_off() {
    local entry service
    for entry in $SERVICES; do
        service=${entry#*:}
        case " $* " in *" ${entry%:*} "*) ;; *) continue ;; esac
        "${root[@]}" systemctl disable -q "$service.service" 2>/dev/null \
            || "${root[@]}" update-rc.d "$service" disable 2>/dev/null || continue
        "${root[@]}" systemctl disable -q "$service.socket" 2>/dev/null
        say note "${entry%:*}: its service is neither started nor enabled (systemctl enable --now $service would)"
    done
}

# install_groups GROUP...: installs what is absent of them, all at once, else one by one; reports each.
install_groups() {
    local found=() absent=() package test loss new=()
    split_groups "$@"
    if [ ${#found[@]} -gt 0 ]; then say found "${found[*]}"; fi
    [ ${#absent[@]} -gt 0 ] || return 0
    if apt_ready && ! apt_install "${absent[@]}"; then
        for package in "${absent[@]}"; do
            apt_install "$package" || say note "$package: $(grep '^E: ' "$log" | head -n 1)"
        done
    fi
    while IFS=$'\t' read -r package test loss; do
        case " ${absent[*]} " in *" $package "*) ;; *) continue ;; esac
        # shellcheck disable=SC2086
        if $test; then
            say installed "$package $(dpkg-query -W -f '${Version}' "$package" 2>/dev/null)"
            new+=("$package")
        else
            say missing "$package: without it: $loss${no_root:+ ($no_root)}"
            missing+=("$package")
        fi
    done < <(each_package "$@")
    services_stay_off "${new[@]}"
}

# report_left_out GROUP...: names what is absent of groups that nobody asked for.
report_left_out() {
    local group found absent
    for group in "$@"; do
        found=() absent=()
        split_groups "$group"
        [ ${#absent[@]} -eq 0 ] || say 'left out' "${absent[*]}: make setup WITH=$group"
    done
}

# candidate PACKAGE: the version that apt would install, or nothing.
candidate() { apt-cache policy "$1" 2>/dev/null | sed -n 's/^  Candidate: \([0-9].*\)/\1/p'; }

# versioned_rust: Ubuntu's newest package cargo-1.NN that is new enough, as "1.NN", or nothing.
versioned_rust() {
    local version
    version=$(apt-cache search --names-only '^cargo-1\.[0-9]+$' | sed -n 's/^cargo-\([0-9.]*\) .*/\1/p' | sort -V | tail -n 1)
    at_least "$version" "$RUST_MIN" && echo "$version"
}

# with_candidates PACKAGE...: those of them that apt has.
with_candidates() {
    local package
    for package in "$@"; do
        [ -n "$(candidate "$package")" ] && echo "$package"
    done
}

# install_rust: the first source that has Rust >= RUST_MIN: Debian's `-web` packages (kept current for browsers),
# the distribution's own, Ubuntu's versioned ones, rustup from apt, rustup from its site.
install_rust() {
    local version=''
    if apt_ready; then
        if at_least "$(candidate cargo-web)" "$RUST_MIN"; then
            rust_packages rustc-web cargo-web rust-web-clippy rustfmt-web && return 0
        fi
        if at_least "$(candidate cargo | sed 's/^0\.\([0-9]*\)\..*/1.\1/')" "$RUST_MIN"; then
            rust_packages rustc cargo rust-clippy rustfmt && return 0
        fi
        version=$(versioned_rust)
        if [ -n "$version" ]; then
            rust_packages "rustc-$version" "cargo-$version" "rust-$version-clippy" "rustfmt-$version" && return 0
        fi
        if ! has_command rustup && [ -n "$(candidate rustup)" ]; then
            apt_install rustup || say note "rustup: $(grep '^E: ' "$log" | head -n 1)"
        fi
    fi
    rustup_stable
}

# rust_packages RUSTC CARGO [OPTIONAL...]: installs them; true when a new enough Rust is there afterwards.
rust_packages() {
    # shellcheck disable=SC2046  # package names
    if ! apt_install $(with_candidates "$@"); then
        say note "$2: $(grep '^E: ' "$log" | head -n 1)"
        # An older Rust from apt is in the way; whether it may go is for its owner to say.
        grep -q 'need to be removed' "$log" && rust_remedy="as root, which replaces the older one: apt-get install $*"
        return 1
    fi
    find_rust && say installed "$2: rust $RUST_VERSION in $RUST_BIN"
}

# rustup_stable: the stable toolchain into ~/.cargo, by an installed rustup, else by rustup's own installer.
rustup_stable() {
    local parts=(--profile minimal --component clippy --component rustfmt)
    if has_command rustup; then
        rustup toolchain install stable "${parts[@]}" >"$log" 2>&1
    elif has_command curl; then
        curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs 2>"$log" \
            | sh -s -- -y --no-modify-path "${parts[@]}" >>"$log" 2>&1
    else
        return 1
    fi
    find_rust && say installed "rustup: rust $RUST_VERSION in $RUST_BIN"
}

# report_rust: finds Rust or installs it; its lints and formatter are optional.
report_rust() {
    if find_rust; then
        say found "rust $RUST_VERSION in $RUST_BIN"
    elif ! install_rust; then
        say missing "rust >= $RUST_MIN${RUST_OLD:+; too old:$RUST_OLD}${no_root:+ ($no_root)}"
        missing+=("rust >= $RUST_MIN (${rust_remedy:-packages rustc and cargo}, or https://rustup.rs, which needs no root)")
        return
    fi
    has_command cargo-clippy || say missing 'cargo-clippy: without it: make test skips the lints'
    has_command cargo-fmt || say missing 'cargo-fmt: without it: make test skips the format check'
}

# The groups that WITH names, and the others; a word that is no group ends it.
wanted=() others=()
for group in ${WITH//,/ }; do
    case " $GROUPS_KNOWN all " in *" $group "*) continue ;; esac
    echo "error: WITH names the group \`$group\`, which does not exist; there are ${GROUPS_KNOWN// /, } and all" >&2
    exit 64
done
for group in $GROUPS_KNOWN; do
    case ",${WITH// /,}," in
        *",$group,"*) wanted+=("$group") ;;
        *,all,*) case " $GROUPS_LONG " in *" $group "*) others+=("$group") ;; *) wanted+=("$group") ;; esac ;;
        *) others+=("$group") ;;
    esac
done

log=$(mktemp)
trap 'allow_services; rm -f "$log"' EXIT
no_root='' missing=()

install_groups needed
report_rust
needed_missing=("${missing[@]}")
install_groups base "${wanted[@]}"
report_left_out "${others[@]}"

blocking=()
for package in "${needed_missing[@]}"; do
    case $package in make | git | pkg-config) ;; *) blocking+=("$package") ;; esac
done
if [ ${#blocking[@]} -gt 0 ]; then
    joined=$(printf ', %s' "${blocking[@]}")
    echo "error: sonde cannot be built here without: ${joined:2}; install that, then run this again" >&2
    exit 1
fi
exit 0
