//! Sends from memory that the kernel reads later (MSG_ZEROCOPY), and what became of them.
//!
//! Model:   each send that took bytes has a number, counted from zero on its socket. When the kernel needs its memory no
//!          more, it queues a notice on the socket's error queue: the first and last number of a range, and whether it copied
//!          the bytes after all (SO_EE_CODE_ZEROCOPY_COPIED), as it does for all that stays on this host (loopback, veth).
//! Source:  Documentation/networking/msg_zerocopy.rst.
//! Checked: `notices_come_for_every_send`.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};

use rustix::io::Errno;
use rustix::net::SendFlags;

use crate::Result;
use crate::error::{Attempt, checked};

/// The flag of a send whose memory is read later.
pub const ZEROCOPY: SendFlags = SendFlags::from_bits_retain(libc::MSG_ZEROCOPY as u32);

const ORIGIN_ZEROCOPY: u8 = 5;
const CODE_COPIED: u8 = 1;

/// Sends that the kernel is done with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Notice {
    /// The first.
    pub first: u32,
    /// The last, of the same notice.
    pub last: u32,
    /// Their bytes were copied after all.
    pub copied: bool,
}

/// Permits such sends on a socket.
///
/// # Errors
/// The kernel has none for this kind of socket.
pub fn permit(socket: impl AsFd) -> Result<()> {
    crate::socket::set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_ZEROCOPY, &1i32)
        .attempt(|| "set SO_ZEROCOPY (Linux 4.14 for TCP, 5.0 for UDP)".into())
}

/// The next notice, if there is one. Never waits.
///
/// # Errors
/// The socket is broken, or its error queue holds what is no such notice.
pub fn notice(socket: impl AsFd) -> Result<Option<Notice>> {
    #[repr(align(8))]
    struct Control([MaybeUninit<u8>; 128]);
    let mut control = Control([MaybeUninit::uninit(); 128]);
    // SAFETY: all zeroes is a valid msghdr.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_control = control.0.as_mut_ptr().cast();
    header.msg_controllen = size_of::<Control>() as _;
    // SAFETY: the header names a live local buffer of the length given.
    let status = unsafe {
        libc::recvmsg(
            socket.as_fd().as_raw_fd(),
            &mut header,
            libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT,
        )
    };
    match checked(status as i32) {
        Ok(_) => {}
        Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
        Err(errno) => return Err(errno).attempt(|| "read the error queue".into()),
    }
    // SAFETY: the kernel filled the header and the control buffer that it names.
    let mut part = unsafe { libc::CMSG_FIRSTHDR(&header) };
    while !part.is_null() {
        // SAFETY: CMSG_FIRSTHDR and CMSG_NXTHDR give whole headers inside of the buffer; what follows one is as long as its
        // level and type say, and is read without alignment.
        unsafe {
            let of_error = matches!(
                ((*part).cmsg_level, (*part).cmsg_type),
                (libc::SOL_IP, libc::IP_RECVERR) | (libc::SOL_IPV6, libc::IPV6_RECVERR)
            );
            if of_error {
                let error: libc::sock_extended_err =
                    std::ptr::read_unaligned(libc::CMSG_DATA(part).cast());
                if error.ee_origin == ORIGIN_ZEROCOPY && error.ee_errno == 0 {
                    return Ok(Some(Notice {
                        first: error.ee_info,
                        last: error.ee_data,
                        copied: error.ee_code & CODE_COPIED != 0,
                    }));
                }
            }
            part = libc::CMSG_NXTHDR(&header, part);
        }
    }
    Err(Errno::BADMSG).attempt(|| "understand what the error queue holds".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn notices_come_for_every_send() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        permit(&client).unwrap();
        assert_eq!(notice(&client).unwrap(), None);
        let bytes = vec![7; 100_000];
        let mut sent = 0;
        for _ in 0..3 {
            sent += rustix::net::send(&client, &bytes, ZEROCOPY).unwrap();
        }
        let mut received = vec![0; sent];
        server.read_exact(&mut received).unwrap();
        assert!(received.iter().all(|byte| *byte == 7));
        let mut done = 0;
        for _ in 0..2_000 {
            while let Some(notice) = notice(&client).unwrap() {
                assert_eq!(notice.first, done);
                // Loopback has no other way.
                assert!(notice.copied);
                done = notice.last + 1;
            }
            if done == 3 {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        panic!("{done} of 3 sends have a notice");
    }
}
