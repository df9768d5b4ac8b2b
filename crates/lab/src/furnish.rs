//! The folders of a host: what is its own, what is the machine's, and what of the machine its root must not write.
//!
//! Model:   mounts over mounts, made before the host's programs exist. The host's init then copies them into a mount namespace of a
//!          user namespace of its own, where the kernel lets nobody take one away, nor mount a proc or sysfs that shows more
//!          (MNT_LOCKED, mount_too_revealing).
//! Source:  mount_namespaces(7), "Restrictions on mount namespaces".
//! Checked: the end-to-end tests; `lab_powers` for what is kept from root.

use crate::config::User;
use crate::control::HostConfig;
use crate::host::{HostError, file};
use crate::wire::Addresses;
use crate::{account, exec, libraries};
use sonde_link::{By, Port, SiteSpec, Subnets, names_of};
use sonde_sys::mount::{self, Without};
use sonde_sys::sysctl;
use std::collections::BTreeMap;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The most that is in one of a host's own folders.
const TMP_BYTES: u64 = 1 << 30;

/// The host's own folders.
pub(crate) fn furnish(config: &HostConfig) -> Result<(), HostError> {
    let open = |path: &Path| std::fs::File::open(path);
    mount::make_private(Path::new("/"))?;
    let shared = open(Path::new(exec::FOLDER)).map_err(file("open the lab's folder"))?;
    let below = |path: &&PathBuf| path.starts_with("/tmp") || path.starts_with("/run");
    let kept: Vec<_> = config
        .keep
        .iter()
        .filter(below)
        .filter_map(|path| open(path).ok().map(|fd| (path, fd)))
        .collect();
    mount::proc(Path::new("/proc"))?;
    // Who works in /tmp itself shares it: there is no other way to see the folder.
    if !config.keep.iter().any(|path| path == Path::new("/tmp")) {
        mount::tmpfs(Path::new("/tmp"), 0o1777, TMP_BYTES)?;
    }
    mount::tmpfs(Path::new("/run"), 0o755, TMP_BYTES)?;
    mount::tmpfs(Path::new("/dev/shm"), 0o1777, TMP_BYTES)?;
    mount::devpts(Path::new("/dev/pts"))?;
    mount::bind(Path::new("/dev/pts/ptmx"), Path::new("/dev/ptmx"))?;
    let again = |path: &Path, fd: &std::fs::File| {
        std::fs::create_dir_all(path).map_err(file(format!("make {}", path.display())))?;
        // With what is mounted below: the command itself lies in the lab's folder by a mount.
        mount::bind_recursive(
            Path::new(&format!("/proc/self/fd/{}", fd.as_raw_fd())),
            path,
        )
        .map_err(HostError::from)
    };
    again(Path::new(exec::FOLDER), &shared)?;
    for (path, fd) in &kept {
        again(path, fd)?;
    }
    std::fs::create_dir_all("/run/lock").map_err(file("make /run/lock"))?;
    libraries::furnish().map_err(file("make the folder of PVM's sockets"))?;
    names(config)?;
    accounts(config.user)?;
    if config.guarded {
        guard()?;
    }
    Ok(())
}

/// Takes the machine's settings from a root who is root outside too: the kernel asks for the owner of these files, not for a
/// capability. All of /proc that is not a process's, but what is the network's, is read only.
fn guard() -> Result<(), HostError> {
    let proc = Path::new("/proc");
    let entries = std::fs::read_dir(proc).map_err(file("read /proc"))?;
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name();
        let is_process = name.as_encoded_bytes().iter().all(u8::is_ascii_digit);
        // What has ended meanwhile was a process.
        let Some(about) = entry.metadata().ok().filter(|_| !is_process) else {
            continue;
        };
        if about.is_dir() || about.is_file() && about.permissions().mode() & 0o222 != 0 {
            mount::proc_part(&entry.path(), true)?;
        }
    }
    Ok(mount::proc_part(Path::new("/proc/sys/net"), false)?)
}

/// The lab's own /dev, with the devices that programs of every user have and that of TAPs, no other device in any folder, and the
/// machine's /sys read only. To be called in the lab's own mounts, which the hosts copy.
pub(crate) fn guard_machine(tun: &Path) -> Result<(), HostError> {
    const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
    const LINKS: [(&str, &str); 4] = [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
    ];
    const BYTES: u64 = 1 << 20;
    let (old, new) = (Path::new("/dev"), Path::new("/run/dev"));
    let made = |path: &Path| file(format!("make {}", path.display()));
    std::fs::create_dir(new).map_err(made(new))?;
    mount::tmpfs(new, 0o755, BYTES)?;
    let tun_here = tun.strip_prefix(old).ok();
    if tun_here.is_none() && tun.exists() {
        mount::bind(tun, tun)?;
    }
    for name in DEVICES.iter().map(Path::new).chain(tun_here) {
        let (device, place) = (old.join(name), new.join(name));
        if device.exists() {
            std::fs::create_dir_all(place.parent().unwrap_or(new)).map_err(made(&place))?;
            std::fs::File::create(&place).map_err(made(&place))?;
            mount::bind(&device, &place)?;
        }
    }
    for (name, target) in LINKS {
        std::os::unix::fs::symlink(target, new.join(name)).map_err(made(&new.join(name)))?;
    }
    for name in ["pts", "shm"] {
        std::fs::create_dir(new.join(name)).map_err(made(&new.join(name)))?;
    }
    std::fs::File::create(new.join("ptmx")).map_err(made(&new.join("ptmx")))?;
    mount::bind_recursive(new, old)?;
    mount::unmount(new)?;
    mount::restrict(Path::new("/"), Without::Devices, &[old, tun])?;
    mount::restrict(Path::new("/sys"), Without::Writing, &[])?;
    // Who may mount control groups writes to those of the machine.
    match sysctl::write("user/max_cgroup_namespaces", "0") {
        Err(_) if sysctl::read("user/max_cgroup_namespaces").is_err() => Ok(()),
        done => Ok(done?),
    }
}

/// /etc/hosts and /etc/hostname of this host.
fn names(config: &HostConfig) -> Result<(), HostError> {
    instead("/etc/hosts", &config.table, 0o644)?;
    instead("/etc/hostname", &format!("{}\n", config.name), 0o644)
}

/// The /etc/hosts of the hosts: a host has the site's name and h1, h2 and so on, by the address to which the way is shortest; one of several
/// interfaces has a name more by each. A router has the site's name for it in each subnet.
pub(crate) struct Tables<'a> {
    site: &'a SiteSpec,
    names: Vec<&'a str>,
    subnets: &'a Subnets,
    addresses: &'a Addresses,
    /// By the subnets that a host is in: what all such hosts have.
    known: BTreeMap<Vec<Option<usize>>, String>,
}

impl<'a> Tables<'a> {
    pub fn new(site: &'a SiteSpec, subnets: &'a Subnets, addresses: &'a Addresses) -> Self {
        Self {
            names: site.names(),
            site,
            subnets,
            addresses,
            known: BTreeMap::new(),
        }
    }

    /// That of a host, counted from 0.
    pub fn of(&mut self, host: u16) -> String {
        let own = self.subnets.ports_of(host).iter();
        let own: Vec<_> = own.map(|port| self.subnets.of_port(*port)).collect();
        if !self.known.contains_key(&own) {
            let table = self.table(host);
            self.known.insert(own.clone(), table);
        }
        self.known[&own].clone()
    }

    fn table(&self, host: u16) -> String {
        let mut table = String::from("127.0.0.1\tlocalhost\n");
        let mut add = |port: Port, mut names: Vec<String>| {
            names.dedup();
            let address = self.addresses.address(port);
            table.push_str(&format!("{address}\t{}\n", names.join("\t")));
        };
        for (other, name) in (0..).zip(&self.names) {
            let ports = self.subnets.ports_of(other);
            let way = self.subnets.between(host, other).map(|(_, port)| port);
            let nearest = way.or_else(|| ports.first().copied());
            for (interface, port) in ports.iter().enumerate() {
                let mut names = Vec::new();
                if nearest == Some(*port) {
                    names = vec![(*name).to_owned(), format!("h{}", other + 1)];
                }
                if ports.len() > 1 {
                    let segment = self.subnets.ends[usize::from(port.0)].segment;
                    let segment = &self.site.segment[segment].name;
                    names.extend(names_of(name, usize::from(other) + 1, interface, segment));
                }
                add(*port, names);
            }
        }
        let routers = self.site.router.iter().enumerate();
        for (number, router) in routers.filter(|(_, one)| one.by == By::Model) {
            for ((port, _), segment) in self.subnets.interfaces(number).zip(&router.joins) {
                let whole = format!("{}-{segment}", router.name);
                match router.joins.first() == Some(segment) {
                    true => add(port, vec![router.name.clone(), whole]),
                    false => add(port, vec![whole]),
                }
            }
        }
        table
    }
}

/// The name and the password entry of who programs are, where the machine has none or has locked it: an sshd of theirs, and
/// ssh itself, would refuse. Elsewhere the machine's files stay.
fn accounts(user: User) -> Result<(), HostError> {
    let caller = ["SUDO_USER", "LOGNAME", "USER"].map(|name| std::env::var(name).ok());
    let read = |path| std::fs::read_to_string(path).ok();
    if let Some(passwd) = read("/etc/passwd") {
        let (name, added) = account::named(&passwd, user, &caller);
        if let Some(passwd) = added {
            instead("/etc/passwd", &passwd, 0o644)?;
        }
        // The root of most labs cannot read it, nor can programs. Servers that change their user need one.
        let shadow = match read("/etc/shadow") {
            Some(text) => account::unlocked(&text, &name),
            None if user.is_another() => Some(account::without_passwords(&passwd)),
            None => None,
        };
        if let Some(shadow) = shadow {
            instead("/etc/shadow", &shadow, 0o600)?;
        }
    }
    Ok(())
}

/// Puts a file of this host's own over one of the machine's.
fn instead(target: &str, text: &str, mode: u32) -> Result<(), HostError> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let source = PathBuf::from(format!("/run/{}", target.replace('/', "-")));
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(mode);
    let written = options.open(&source);
    written
        .and_then(|mut to| to.write_all(text.as_bytes()))
        .map_err(file(format!("write {}", source.display())))?;
    if Path::new(target).exists() {
        mount::bind(&source, Path::new(target))?;
    }
    Ok(())
}
