//! The mounts a host's private view of the file system is made of.
//!
//! Model:   each call makes one mount in the current mount namespace; [`make_private`] first, or mounts leak
//!          to the namespace this one was copied from.
//! Source:  mount(2), devpts(5), proc_pid_mountinfo(5).
//! Checked: `flags_are_read_from_mountinfo`; `tests/namespace.rs`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags};

use crate::Result;
use crate::error::Attempt;

const PLAIN: MountFlags = MountFlags::NOSUID
    .union(MountFlags::NODEV)
    .union(MountFlags::NOEXEC);

fn mount(kind: &str, target: &Path, flags: MountFlags, options: &str) -> Result<()> {
    let options = std::ffi::CString::new(options).unwrap_or_default();
    rustix::mount::mount(kind, target, kind, flags, options.as_c_str())
        .attempt(|| format!("mount {kind} on {} with {options:?}", target.display()))
}

/// Stops mounts under `target` (usually "/") from spreading to or from other namespaces.
pub fn make_private(target: &Path) -> Result<()> {
    let flags = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    rustix::mount::mount_change(target, flags)
        .attempt(|| {
            format!(
                "make the mounts under {0} private (in a chroot {0} is not a mount: start it with its folder bound to itself, or as a container)",
                target.display()
            )
        })
}

/// Mounts proc for the current pid namespace; the caller must be in that namespace, not its parent.
pub fn proc(target: &Path) -> Result<()> {
    mount("proc", target, PLAIN, "")
}

/// Makes `path`, which is in a proc of [`proc`], a mount of its own that nobody writes through, or that is written as before.
pub fn proc_part(path: &Path, is_read_only: bool) -> Result<()> {
    bind(path, path)?;
    let mut flags = PLAIN | MountFlags::BIND;
    flags.set(MountFlags::RDONLY, is_read_only);
    remount(path, flags)
}

fn remount(target: &Path, flags: MountFlags) -> Result<()> {
    rustix::mount::mount_remount(target, flags, c"")
        .attempt(|| format!("mount {} again with {flags:?}", target.display()))
}

/// What mounts are no longer good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Without {
    /// Being written through.
    Writing,
    /// Opening devices.
    Devices,
}

/// Takes something from `target` and all mounts below it, but not from those at or below one of `except`.
///
/// One mount after the other, since mount_setattr(2) for all at once is of Linux 5.12 only. What another mount hides cannot be
/// named, and is left as it is.
pub fn restrict(target: &Path, without: Without, except: &[&Path]) -> Result<()> {
    let added = match without {
        Without::Writing => MountFlags::RDONLY,
        Without::Devices => MountFlags::NODEV,
    };
    let text = crate::error::read_text("/proc/self/mountinfo")?;
    for (point, flags) in text.lines().filter_map(parse_mount) {
        let is_excepted = except.iter().any(|except| point.starts_with(except));
        if is_excepted || !point.starts_with(target) || flags.contains(added) {
            continue;
        }
        match remount(&point, flags | added | MountFlags::BIND) {
            // It is hidden: there is nothing at its name, or no mount.
            Err(error)
                if matches!(
                    error.errno(),
                    Some(Errno::NOENT | Errno::INVAL | Errno::NOTDIR)
                ) => {}
            done => done?,
        }
    }
    Ok(())
}

/// Where a line of mountinfo has its mount, and those of its flags that a remount would otherwise take away.
fn parse_mount(line: &str) -> Option<(PathBuf, MountFlags)> {
    let mut words = line.split(' ');
    let (point, options) = (words.nth(4)?, words.next()?);
    let flag = |word| match word {
        "ro" => MountFlags::RDONLY,
        "nosuid" => MountFlags::NOSUID,
        "nodev" => MountFlags::NODEV,
        "noexec" => MountFlags::NOEXEC,
        _ => MountFlags::empty(),
    };
    let mut path = Vec::with_capacity(point.len());
    let mut rest = point.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        // Blanks and backslashes stand as three octal digits.
        let code = (*byte == b'\\').then(|| after.get(..3)).flatten();
        let code =
            code.and_then(|code| u8::from_str_radix(std::str::from_utf8(code).ok()?, 8).ok());
        path.push(code.unwrap_or(*byte));
        rest = if code.is_some() { &after[3..] } else { after };
    }
    let flags = options.split(',').map(flag).collect();
    Some((PathBuf::from(OsString::from_vec(path)), flags))
}

/// Mounts sysfs for the current network namespace.
pub fn sysfs(target: &Path) -> Result<()> {
    mount("sysfs", target, PLAIN, "")
}

/// Mounts an empty tmpfs with the mode of its root (such as 0o1777) and a size; programs in it may be run.
pub fn tmpfs(target: &Path, mode: u32, size_bytes: u64) -> Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount(
        "tmpfs",
        target,
        flags,
        &format!("mode={mode:o},size={size_bytes}"),
    )
}

/// Mounts a new devpts instance whose `ptmx` all may open.
///
/// /dev/ptmx must then lead to it: bind `target/ptmx` over it. `gid=` is left out, since a single-id map has
/// no group tty and the mount would fail with EINVAL.
pub fn devpts(target: &Path) -> Result<()> {
    mount(
        "devpts",
        target,
        MountFlags::NOSUID | MountFlags::NOEXEC,
        "newinstance,ptmxmode=0666,mode=0620",
    )
}

/// Binds a file over a file, or a folder over a folder; both must exist.
pub fn bind(source: &Path, target: &Path) -> Result<()> {
    rustix::mount::mount_bind(source, target)
        .attempt(|| format!("bind {} over {}", source.display(), target.display()))
}

/// Binds a folder with all that is mounted below it.
pub fn bind_recursive(source: &Path, target: &Path) -> Result<()> {
    rustix::mount::mount_bind_recursive(source, target).attempt(|| {
        format!(
            "bind {} with its mounts over {}",
            source.display(),
            target.display()
        )
    })
}

/// Removes a mount at once; what is still open in it lives on until closed.
pub fn unmount(target: &Path) -> Result<()> {
    rustix::mount::unmount(target, UnmountFlags::DETACH)
        .attempt(|| format!("unmount {}", target.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_read_from_mountinfo() {
        let line = r"36 35 98:0 /mnt1 /mnt/a\040b\134c ro,nosuid,noexec,relatime master:1 - ext3 /dev/root rw,errors=continue";
        let flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NOEXEC;
        assert_eq!(
            parse_mount(line),
            Some((PathBuf::from(r"/mnt/a b\c"), flags))
        );
        assert_eq!(parse_mount("36 35 98:0 /"), None);
    }
}
