//! The mounts a host's private view of the file system is made of.
//!
//! Model:   each call makes one mount in the current mount namespace; [`make_private`] first, or mounts leak
//!          to the namespace this one was copied from.
//! Source:  mount(2), devpts(5).
//! Checked: `tests/namespace.rs`.

use std::path::Path;

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
