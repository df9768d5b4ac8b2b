//! Several datagrams with one call.
//!
//! Source:  sendmmsg(2), recvmmsg(2). An error after the first datagram is not told: the call gives how many went, and the next
//!          call gives the error.
//! Checked: `batches_cross`.

use std::os::fd::{AsFd, AsRawFd};

use rustix::io::Errno;

/// The most datagrams of a call.
pub const BATCH_MAX: usize = 64;

fn vectors(buffers: &mut [&mut [u8]]) -> [libc::iovec; BATCH_MAX] {
    let empty = libc::iovec {
        iov_base: std::ptr::null_mut(),
        iov_len: 0,
    };
    let mut vectors = [empty; BATCH_MAX];
    for (vector, buffer) in vectors.iter_mut().zip(buffers) {
        vector.iov_base = buffer.as_mut_ptr().cast();
        vector.iov_len = buffer.len();
    }
    vectors
}

fn headers(vectors: &mut [libc::iovec; BATCH_MAX]) -> [libc::mmsghdr; BATCH_MAX] {
    // SAFETY: mmsghdr is plain data for which zero is valid.
    let mut headers: [libc::mmsghdr; BATCH_MAX] = unsafe { std::mem::zeroed() };
    for (header, vector) in headers.iter_mut().zip(vectors) {
        header.msg_hdr.msg_iov = vector;
        header.msg_hdr.msg_iovlen = 1;
    }
    headers
}

fn counted(status: libc::c_int) -> rustix::io::Result<usize> {
    usize::try_from(status).map_err(|_| {
        let code = std::io::Error::last_os_error().raw_os_error();
        Errno::from_raw_os_error(code.unwrap_or(libc::EIO))
    })
}

/// Sends the first [`BATCH_MAX`] of `buffers` by a connected socket, without waiting; how many were taken.
///
/// # Errors
/// The kernel's, of the first datagram: EAGAIN where there is no room.
pub fn send(socket: impl AsFd, buffers: &mut [&mut [u8]]) -> rustix::io::Result<usize> {
    let count = buffers.len().min(BATCH_MAX);
    let mut vectors = vectors(buffers);
    let mut headers = headers(&mut vectors);
    // SAFETY: the headers point to vectors, and these to buffers, that live across the call; the kernel reads the buffers and
    // writes the first `count` headers.
    let status = unsafe {
        libc::sendmmsg(
            socket.as_fd().as_raw_fd(),
            headers.as_mut_ptr(),
            count as libc::c_uint,
            (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as _,
        )
    };
    counted(status)
}

/// Receives into the first [`BATCH_MAX`] of `buffers` what there is, without waiting; the sizes of the datagrams. One that
/// is larger than its buffer has its true size here, and only its begin there.
///
/// # Errors
/// The kernel's: EAGAIN where there is none.
pub fn recv(
    socket: impl AsFd,
    buffers: &mut [&mut [u8]],
    sizes: &mut [usize; BATCH_MAX],
) -> rustix::io::Result<usize> {
    let count = buffers.len().min(BATCH_MAX);
    let mut vectors = vectors(buffers);
    let mut headers = headers(&mut vectors);
    // SAFETY: as above; the kernel writes at most the length of each buffer, and the first `count` headers.
    let status = unsafe {
        libc::recvmmsg(
            socket.as_fd().as_raw_fd(),
            headers.as_mut_ptr(),
            count as libc::c_uint,
            (libc::MSG_DONTWAIT | libc::MSG_TRUNC) as _,
            std::ptr::null_mut(),
        )
    };
    let count = counted(status)?;
    for (size, header) in sizes.iter_mut().zip(&headers[..count]) {
        *size = header.msg_len as usize;
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn batches_cross() {
        let to = UdpSocket::bind("127.0.0.1:0").unwrap();
        let from = UdpSocket::bind("127.0.0.1:0").unwrap();
        from.connect(to.local_addr().unwrap()).unwrap();
        let mut texts: Vec<Vec<u8>> = (1..=70).map(|n| vec![n as u8; n]).collect();
        let mut buffers: Vec<&mut [u8]> = texts.iter_mut().map(Vec::as_mut_slice).collect();
        assert_eq!(send(&from, &mut buffers).unwrap(), BATCH_MAX);
        let mut space = vec![[0u8; 32]; BATCH_MAX];
        let mut into: Vec<&mut [u8]> = space.iter_mut().map(|one| &mut one[..]).collect();
        let mut sizes = [0; BATCH_MAX];
        let count = recv(&to, &mut into, &mut sizes).unwrap();
        assert_eq!(count, BATCH_MAX);
        assert_eq!(
            (sizes[0], sizes[40]),
            (1, 41),
            "the true size of what was cut"
        );
        assert_eq!((space[0][0], space[40][31]), (1, 41));
        let mut into: Vec<&mut [u8]> = space.iter_mut().map(|one| &mut one[..]).collect();
        assert_eq!(recv(&to, &mut into, &mut sizes), Err(Errno::AGAIN));
    }
}
