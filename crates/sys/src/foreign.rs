//! Memory of another process of this machine, copied straight from there or to there.
//!
//! Model:   one copy by the kernel, without a buffer between (cross memory attach). The other process has told where its
//!          bytes are, and keeps them there; what it tells may be wrong, and then the kernel refuses or gives other bytes.
//! Source:  process_vm_readv(2); who may is said in ptrace(2), "Ptrace access mode checking": processes of one user, where
//!          Yama's `ptrace_scope` is 0.
//! Units:   bytes.
//! Checked: `bytes_are_read_where_they_are`, `what_is_not_there_is_refused`; the native engine's tests over `shm`.

use rustix::io::Errno;

use crate::error::Attempt;
use crate::{Error, Result};

/// Fills `into` from the memory of process `pid` at `address`.
///
/// # Errors
/// The kernel lets nobody, or not this process; the other one has ended, or no such bytes.
pub fn read(pid: u32, address: u64, into: &mut [u8]) -> Result<()> {
    let mut done = 0;
    while done < into.len() {
        let rest = &mut into[done..];
        let local = libc::iovec {
            iov_base: rest.as_mut_ptr().cast(),
            iov_len: rest.len(),
        };
        let remote = remote(address + done as u64, rest.len());
        // SAFETY: one local part, which is exclusively borrowed and as long as it says; the remote part is only a number
        // here, whose bytes the kernel checks in the other process.
        let copied = unsafe { libc::process_vm_readv(pid as i32, &local, 1, &remote, 1, 0) };
        done += advanced(copied, || {
            format!("copy {} bytes from the memory of process {pid}", into.len())
        })?;
    }
    Ok(())
}

/// Copies `from` to the memory of process `pid` at `address`. It is for the other process to have room there.
///
/// # Errors
/// As of [`read`]; `pid` is this process.
pub fn write(pid: u32, address: u64, from: &[u8]) -> Result<()> {
    if pid == std::process::id() {
        return Err(Error::Answer {
            what: "copy bytes to the memory of another process".into(),
            text: format!("process {pid} is this one"),
        });
    }
    let mut done = 0;
    while done < from.len() {
        let rest = &from[done..];
        let local = libc::iovec {
            iov_base: rest.as_ptr().cast_mut().cast(),
            iov_len: rest.len(),
        };
        let remote = remote(address + done as u64, rest.len());
        // SAFETY: one local part, borrowed and as long as it says, which the kernel only reads; the remote part is in
        // another process, never in this one.
        let copied = unsafe { libc::process_vm_writev(pid as i32, &local, 1, &remote, 1, 0) };
        done += advanced(copied, || {
            format!("copy {} bytes to the memory of process {pid}", from.len())
        })?;
    }
    Ok(())
}

fn remote(address: u64, len: usize) -> libc::iovec {
    libc::iovec {
        iov_base: std::ptr::without_provenance_mut(address as usize),
        iov_len: len,
    }
}

fn advanced(copied: isize, what: impl FnOnce() -> String) -> Result<usize> {
    match copied {
        1.. => Ok(copied as usize),
        0 => Err(Errno::FAULT).attempt(what),
        _ => {
            let error = std::io::Error::last_os_error();
            Err(Errno::from_io_error(&error).unwrap_or(Errno::FAULT)).attempt(what)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_where_they_are() {
        let there: Vec<u8> = (0..100_000_u32).map(|at| (at % 251) as u8).collect();
        let mut here = vec![0; there.len()];
        match read(std::process::id(), there.as_ptr() as u64, &mut here) {
            Ok(()) => assert_eq!(here, there),
            Err(error) => println!("skipped: {error}"),
        }
    }

    #[test]
    fn what_is_not_there_is_refused() {
        let error = read(std::process::id(), 8, &mut [0; 8]).unwrap_err();
        assert!(error.to_string().contains("copy 8 bytes from"), "{error}");
        assert!(read(i32::MAX as u32, 8, &mut [0; 8]).is_err());
        assert!(write(i32::MAX as u32, 8, &[0; 8]).is_err());
        let error = write(std::process::id(), 8, &[0; 8]).unwrap_err();
        assert!(error.to_string().contains("is this one"), "{error}");
    }
}
