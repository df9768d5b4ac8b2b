//! The sending end of a stream of messages, by each of the methods.
//!
//! Model:   messages of one size, numbered from zero, back to back; where the stream is, its bytes sent, is the caller's.
//!          `plain`: one send for a message. `zerocopy`: the same from memory that the kernel reads later, in a ring of
//!          messages, so that none is stamped anew before the kernel is done with it. `splice`: each message's header by
//!          send with MSG_MORE, its body by sendfile from a file in memory that never changes, since nobody says when the
//!          receiver has read a page of it. `uring`: sends of a ring, small messages many in a chain.
//! Units:   bytes.
//! Checked: `every_method_sends_the_same_bytes`, `an_early_end_is_an_error`.

use std::os::fd::OwnedFd;

use rustix::fs::MemfdFlags;
use rustix::io::Errno;
use rustix::net::SendFlags;

use crate::payload::{self, HEADER_BYTES};
use crate::uring::Chain;
use crate::wait::Spin;
use crate::zerocopy::Zerocopy;
use crate::{Aligned, ByteStream, Error, Result, Tcp};
use sonde_measure::{Method, Transfer, Wait};

/// The most bytes of a call, so that the caller may look at the clock in between.
pub(crate) const PIECE_BYTES_MAX: usize = 1 << 20;

const ONLY_TCP: &str = "opened with a method that TCP alone has";

/// The sending end.
#[derive(Debug)]
pub struct Outlet {
    size_bytes: usize,
    by: By,
}

#[derive(Debug)]
enum By {
    Plain(Aligned),
    Zerocopy(Zerocopy),
    Splice(Splice),
    Uring(Box<Chain>),
}

impl Outlet {
    /// For messages of `size_bytes` by the connection's method. By `uring` it is for the calling thread alone.
    ///
    /// # Errors
    /// The kernel has not what the method needs.
    pub fn open(channel: &mut impl ByteStream, size_bytes: usize) -> Result<Self> {
        let method = channel.options().method;
        let by = match (method, channel.as_tcp()) {
            (Method::Zerocopy, Some(tcp)) => By::Zerocopy(Zerocopy::new(tcp, size_bytes)?),
            (Method::Splice, Some(tcp)) => By::Splice(Splice::new(tcp, size_bytes)?),
            (Method::Uring, Some(tcp)) => By::Uring(Box::new(Chain::new(tcp, size_bytes)?)),
            _ => {
                let message = payload::message(size_bytes);
                By::Plain(Aligned::new(message, &channel.options().knobs)?)
            }
        };
        Ok(Self { size_bytes, by })
    }

    /// Sends some bytes of the stream from `position`, waiting until the kernel takes some; how many.
    ///
    /// # Errors
    /// The peer is gone, or took nothing within the timeout.
    #[inline]
    pub fn send_some(&mut self, channel: &mut impl ByteStream, position: u64) -> Result<usize> {
        let size = self.size_bytes as u64;
        let (sequence, at) = ((position / size) as u32, (position % size) as usize);
        let end = self.size_bytes.min(at + PIECE_BYTES_MAX);
        if let By::Plain(message) = &mut self.by {
            if at == 0 {
                message.number(sequence);
            }
            let sent = channel.send_some(&message[at..end])?;
            if at + sent == self.size_bytes {
                message.used(sequence);
            }
            return Ok(sent);
        }
        let tcp = channel.as_tcp().expect(ONLY_TCP);
        match &mut self.by {
            By::Zerocopy(zerocopy) => zerocopy.send_some(tcp, sequence, at..end),
            By::Splice(splice) => splice.send_some(tcp, sequence, at..end),
            By::Uring(chain) => chain.send_some(tcp, sequence, at..end),
            By::Plain(_) => unreachable!("it was sent above"),
        }
    }

    /// After the last byte: waits until the kernel needs this end's memory no more. The peer must read meanwhile.
    ///
    /// # Errors
    /// The connection is broken, or the kernel is not done within the timeout.
    pub fn close(&mut self, channel: &mut impl ByteStream) -> Result<()> {
        let tcp = channel.as_tcp();
        match &mut self.by {
            By::Plain(_) | By::Uring(_) => Ok(()),
            By::Zerocopy(zerocopy) => zerocopy.finish(tcp.expect(ONLY_TCP)),
            By::Splice(splice) => splice.finish(tcp.expect(ONLY_TCP)),
        }
    }

    /// How it was sent.
    pub fn transfer(&self) -> Transfer {
        match &self.by {
            By::Plain(_) => Transfer::default(),
            By::Zerocopy(zerocopy) => zerocopy.transfer(),
            By::Uring(chain) => chain.transfer(),
            By::Splice(_) => Transfer {
                splice: Some(sonde_measure::Splice::Bodies),
                ..Transfer::default()
            },
        }
    }
}

/// Messages whose bodies are pages of a file in memory.
#[derive(Debug)]
struct Splice {
    file: OwnedFd,
    header: [u8; HEADER_BYTES],
    header_bytes: usize,
    size_bytes: usize,
}

fn failed(channel: &Tcp, attempt: &'static str) -> impl Fn(Errno) -> Error + use<> {
    let peer = channel.peer;
    move |errno| Error::Call {
        peer,
        attempt,
        errno,
    }
}

impl Splice {
    fn new(channel: &Tcp, size_bytes: usize) -> Result<Self> {
        let file = rustix::fs::memfd_create("sonde-message", MemfdFlags::CLOEXEC)
            .map_err(failed(channel, "make a file in memory"))?;
        let message = payload::message(size_bytes);
        let mut rest = &message[..];
        while !rest.is_empty() {
            let written = rustix::io::write(&file, rest)
                .map_err(failed(channel, "fill the file in memory"))?;
            rest = &rest[written..];
        }
        if channel.options.wait == Wait::Poll {
            set_nonblocking(channel, true)?;
        }
        Ok(Self {
            file,
            header: [0; HEADER_BYTES],
            header_bytes: HEADER_BYTES.min(size_bytes),
            size_bytes,
        })
    }

    #[inline]
    fn send_some(
        &mut self,
        channel: &mut Tcp,
        sequence: u32,
        part: std::ops::Range<usize>,
    ) -> Result<usize> {
        if part.start == 0 {
            // The header of a message has its size in it: stamped as one, and cut off.
            self.header = payload::header(sequence, self.size_bytes);
        }
        if part.start < self.header_bytes {
            let mut flags = SendFlags::NOSIGNAL;
            if self.size_bytes > self.header_bytes {
                flags |= SendFlags::MORE;
            }
            return channel.send_with(&self.header[part.start..self.header_bytes], flags);
        }
        let mut spin = Spin::new(channel.options.timeout);
        loop {
            let mut offset = part.start as u64;
            match rustix::fs::sendfile(&channel.fd, &self.file, Some(&mut offset), part.len()) {
                Ok(sent) => return Ok(sent),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if channel.options.wait == Wait::Poll && spin.again() => {}
                Err(Errno::AGAIN) => {
                    return Err(channel.silence(format!("room to send {} bytes", part.len())));
                }
                Err(errno) => return Err(failed(channel, "send a file")(errno)),
            }
        }
    }

    fn finish(&mut self, channel: &mut Tcp) -> Result<()> {
        if channel.options.wait == Wait::Poll {
            set_nonblocking(channel, false)?;
        }
        Ok(())
    }
}

/// sendfile has no flag for it.
fn set_nonblocking(channel: &Tcp, on: bool) -> Result<()> {
    rustix::io::ioctl_fionbio(&channel.fd, on).map_err(failed(channel, "make sends return at once"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::StreamCheck;
    use crate::{Acceptor, Channel, Inlet, Options};
    use sonde_measure::{Knobs, Path};
    use std::time::Duration;

    fn pair(method: Method, wait: Wait, knobs: Knobs, timeout_ms: u64) -> (Tcp, Tcp) {
        let options = Options {
            timeout: Duration::from_millis(timeout_ms),
            method,
            knobs,
            ..Options::new(wait)
        };
        let mut acceptor = Acceptor::bind("127.0.0.1:0".parse().unwrap(), options.clone()).unwrap();
        let client = Tcp::connect(acceptor.local(), options).unwrap();
        let server = acceptor
            .accept(None, Duration::from_secs(5))
            .unwrap()
            .unwrap();
        (client, server)
    }

    /// Sends this many bytes, receives and checks each; how many messages came, and what was said of the sending.
    fn cross(
        (mut client, mut server): (Tcp, Tcp),
        size: usize,
        bytes: u64,
    ) -> Option<(u64, u32, Transfer)> {
        let mut outlet = match Outlet::open(&mut client, size) {
            Ok(outlet) => outlet,
            Err(error) => {
                println!("skipped: {error}");
                return None;
            }
        };
        let receiver = std::thread::spawn(move || {
            let mut inlet = Inlet::open(&mut server).unwrap();
            let mut check = StreamCheck::new(size, true);
            let mut received = 0;
            loop {
                let came = inlet.recv_some(&mut server).unwrap();
                if came.is_empty() {
                    return (received, check.messages());
                }
                received += came.len() as u64;
                check.on_bytes(came).unwrap();
            }
        });
        let mut position = 0;
        while position < bytes {
            position += outlet.send_some(&mut client, position).unwrap() as u64;
        }
        client.end().unwrap();
        outlet.close(&mut client).unwrap();
        let (received, messages) = receiver.join().unwrap();
        assert_eq!(received, position);
        // The socket waits again as it did before.
        assert_eq!(client.recv_some(&mut [0]).unwrap(), 0);
        Some((received, messages, outlet.transfer()))
    }

    #[test]
    fn every_method_sends_the_same_bytes() {
        for method in Path::Tcp.methods() {
            for (size, wait, buffer) in [
                (1, Wait::Block, None),
                (7, Wait::Poll, None),
                (9, Wait::Block, None),
                (1_000, Wait::Block, Some(5_000)),
                (300_000, Wait::Poll, Some(40_000)),
                (3 << 20, Wait::Block, None),
                (20 << 20, Wait::Block, Some(100_000)),
            ] {
                let bytes = (3 * size as u64).max(20_000);
                let knobs = Knobs {
                    send_buffer_bytes: buffer,
                    recv_buffer_bytes: buffer,
                    chunk_bytes: Some(70_001),
                    ..Knobs::default()
                };
                let pair = pair(*method, wait, knobs, 10_000);
                let Some((received, messages, transfer)) = cross(pair, size, bytes) else {
                    continue;
                };
                assert!(received >= bytes && u64::from(messages) == received / size as u64);
                let share = transfer.zerocopy_copied_share;
                assert_eq!(share.is_some(), *method == Method::Zerocopy);
                // Loopback has no other way, and the record says so.
                assert!(share.is_none() || transfer.zerocopy_note.is_some());
            }
        }
    }

    #[test]
    fn an_early_end_is_an_error() {
        for method in Path::Tcp.methods() {
            let (mut client, server) = pair(*method, Wait::Block, Knobs::default(), 2_000);
            let Ok(mut outlet) = Outlet::open(&mut client, 100_000) else {
                continue;
            };
            outlet.send_some(&mut client, 0).unwrap();
            drop(server);
            let mut position = 100_000;
            let error = loop {
                match outlet.send_some(&mut client, position) {
                    Ok(sent) => position += sent as u64,
                    Err(error) => break error,
                }
                assert!(position < 1 << 30, "nobody reads");
            };
            assert!(matches!(error, Error::Call { .. }), "{method}: {error}");
            // What is outstanding of a broken connection is given back too.
            outlet.close(&mut client).unwrap();
        }
    }

    #[test]
    fn nobody_reads_and_the_send_ends() {
        for method in Path::Tcp.methods() {
            for wait in [Wait::Block, Wait::Poll] {
                let (mut client, server) = pair(*method, wait, Knobs::default(), 60);
                let Ok(mut outlet) = Outlet::open(&mut client, 1 << 20) else {
                    continue;
                };
                let mut position = 0;
                let error = loop {
                    match outlet.send_some(&mut client, position) {
                        Ok(sent) => position += sent as u64,
                        Err(error) => break error,
                    }
                    assert!(position < 1 << 30, "{method} {wait:?} never waits");
                };
                assert!(matches!(error, Error::Timeout { .. }), "{method}: {error}");
                assert!(server.settings().is_ok());
            }
        }
    }
}
