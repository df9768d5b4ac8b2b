//! A byte stream by TCP, with TCP_NODELAY unless the knob says otherwise.
//!
//! Model:   options before connect or listen, then connect by the ordinary blocking call, so that its time is what a
//!          program sees. `Wait::Poll` sends and receives with MSG_DONTWAIT; connect always blocks.
//! Checked: `messages_cross_and_settings_are_read_back`, `every_wait_ends`, `a_closed_peer_is_named`.

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType, ipproto,
};

use sonde_sys::uring::{Call, Ring};

use crate::settings::read_back;
use crate::wait::{Spin, bound_recv, bound_send};
use crate::{Channel, Error, Options, Result};
use sonde_measure::{Method, Path, Socket, Wait};

/// A TCP connection.
#[derive(Debug)]
pub struct Tcp {
    pub(crate) fd: OwnedFd,
    pub(crate) peer: SocketAddr,
    pub(crate) options: Options,
    /// For whole messages by `uring`.
    pub(crate) ring: Option<Box<Ring>>,
}

impl Tcp {
    /// A socket connected to `peer`.
    ///
    /// # Errors
    /// The peer refuses or does not answer within the timeout; an option does not take.
    pub fn connect(peer: SocketAddr, options: Options) -> Result<Self> {
        let failed = |attempt| {
            move |errno| Error::Call {
                peer,
                attempt,
                errno,
            }
        };
        let family = if peer.is_ipv4() {
            AddressFamily::INET
        } else {
            AddressFamily::INET6
        };
        let fd = rustix::net::socket_with(
            family,
            SocketType::STREAM,
            SocketFlags::CLOEXEC,
            Some(ipproto::TCP),
        )
        .map_err(failed("open a socket"))?;
        options.apply(&fd, Path::Tcp)?;
        if options.source.is_some() || options.source_port != 0 {
            let local = options.local(peer);
            let refused = |errno| Error::Local {
                attempt: "send from this address",
                local,
                errno,
            };
            // A connection from this port that has ended keeps it for a minute.
            rustix::net::sockopt::set_socket_reuseaddr(&fd, true).map_err(refused)?;
            rustix::net::bind(&fd, &local).map_err(refused)?;
        }
        let channel = Self::bounded(fd, peer, options)?;
        let begin = Instant::now();
        // A call with a time limit ends where the thread is interrupted; the next one waits on.
        match rustix::io::retry_on_intr(|| rustix::net::connect(&channel.fd, &peer)) {
            Ok(()) => Ok(channel),
            Err(Errno::INPROGRESS | Errno::AGAIN | Errno::TIMEDOUT) => Err(Error::Timeout {
                peer,
                awaited: "the connection".into(),
                waited: begin.elapsed(),
            }),
            Err(errno) => Err(failed("connect")(errno)),
        }
    }

    pub(crate) fn bounded(fd: OwnedFd, peer: SocketAddr, options: Options) -> Result<Self> {
        sonde_sys::socket::set_nodelay(&fd, options.knobs.nodelay)?;
        Self::over(fd, peer, options)
    }

    /// Any connected stream socket with bounded waits: its calls are the same.
    pub(crate) fn over(fd: OwnedFd, peer: SocketAddr, options: Options) -> Result<Self> {
        let failed = |attempt| {
            move |errno| Error::Call {
                peer,
                attempt,
                errno,
            }
        };
        bound_recv(&fd, options.timeout).map_err(failed("bound receives"))?;
        bound_send(&fd, options.timeout).map_err(failed("bound sends"))?;
        Ok(Self {
            fd,
            peer,
            options,
            ring: None,
        })
    }

    /// From here on whole messages go by the connection's method, from this thread only; until then, and by other methods
    /// than `uring`, plainly.
    ///
    /// # Errors
    /// The kernel has not what the method needs.
    pub fn use_method(&mut self) -> Result<()> {
        if self.options.method == Method::Uring {
            let poll = self.options.wait == Wait::Poll;
            self.ring = Some(Box::new(Ring::new(poll)?));
        }
        Ok(())
    }

    /// The other end.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Sends what the kernel takes at once of `bytes`, waiting until it takes some; returns how many.
    ///
    /// # Errors
    /// The peer is gone, or took nothing within the timeout.
    #[inline]
    pub fn send_some(&mut self, bytes: &[u8]) -> Result<usize> {
        self.send_with(bytes, SendFlags::NOSIGNAL)
    }

    #[inline]
    pub(crate) fn send_with(&mut self, bytes: &[u8], mut flags: SendFlags) -> Result<usize> {
        if self.options.wait == Wait::Poll {
            flags |= SendFlags::DONTWAIT;
        }
        let mut spin = Spin::new(self.options.timeout);
        loop {
            match rustix::net::send(&self.fd, bytes, flags) {
                Ok(sent) => return Ok(sent),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if self.options.wait == Wait::Poll && spin.again() => {}
                Err(Errno::AGAIN) => {
                    return Err(self.silence(format!("room to send {} bytes", bytes.len())));
                }
                Err(errno) => {
                    return Err(Error::Call {
                        peer: self.peer,
                        attempt: "send",
                        errno,
                    });
                }
            }
        }
    }

    /// Bounds the window again, which the kernel forgets as it goes; see [`sonde_sys::socket::set_window`].
    #[inline]
    pub(crate) fn hold_window(&self) {
        if let Some(bytes) = self.options.knobs.window_bytes {
            // It took before; a connection that has broken since then says so at the next call.
            let _ = sonde_sys::socket::set_window(&self.fd, bytes);
        }
    }

    /// Receives what there is, waiting until there is some; zero at the end of the stream.
    ///
    /// # Errors
    /// The connection is broken, or nothing came within the timeout.
    #[inline]
    pub fn recv_some(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let flags = match self.options.wait {
            Wait::Poll => RecvFlags::DONTWAIT,
            Wait::Block => RecvFlags::empty(),
        };
        let mut spin = Spin::new(self.options.timeout);
        loop {
            match rustix::net::recv(&self.fd, &mut *buffer, flags) {
                Ok((received, _)) => {
                    self.hold_window();
                    return Ok(received);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if self.options.wait == Wait::Poll && spin.again() => {}
                Err(Errno::AGAIN) => return Err(self.silence(format!("{} bytes", buffer.len()))),
                Err(errno) => {
                    return Err(Error::Call {
                        peer: self.peer,
                        attempt: "receive",
                        errno,
                    });
                }
            }
        }
    }

    /// Receives what there is without waiting; `None` when there is nothing yet, zero at the end of the stream.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn recv_now(&mut self, buffer: &mut [u8]) -> Result<Option<usize>> {
        match rustix::net::recv(&self.fd, &mut *buffer, RecvFlags::DONTWAIT) {
            Ok((received, _)) => {
                self.hold_window();
                Ok(Some(received))
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(errno) => Err(Error::Call {
                peer: self.peer,
                attempt: "receive",
                errno,
            }),
        }
    }

    /// Sends what the kernel takes at once; `None` when it takes nothing now.
    ///
    /// # Errors
    /// The connection is broken.
    #[inline]
    pub fn send_now(&mut self, bytes: &[u8]) -> Result<Option<usize>> {
        match rustix::net::send(&self.fd, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
            Ok(sent) => Ok(Some(sent)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(errno) => Err(Error::Call {
                peer: self.peer,
                attempt: "send",
                errno,
            }),
        }
    }

    #[cold]
    pub(crate) fn silence(&self, awaited: String) -> Error {
        Error::Timeout {
            peer: self.peer,
            awaited,
            waited: self.options.timeout,
        }
    }

    /// Ends both directions, after the peer ended its own, and waits until the last acknowledgement is here, so that this
    /// host has nothing more to send for this connection.
    ///
    /// # Errors
    /// The peer still sends, or does not acknowledge within the timeout.
    pub fn end_in_silence(&mut self) -> Result<()> {
        if self.recv_some(&mut [0])? != 0 {
            return Err(Error::Size {
                peer: self.peer,
                found_bytes: 1,
                wanted_bytes: 0,
            });
        }
        self.end()?;
        let begin = Instant::now();
        while !self.info()?.is_closed() {
            if begin.elapsed() >= self.options.timeout {
                return Err(self.silence("the acknowledgement of the end".into()));
            }
            std::thread::sleep(Duration::from_micros(100));
        }
        Ok(())
    }

    /// Says that nothing more will be sent; what the peer sends can still be received.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn end(&mut self) -> Result<()> {
        rustix::net::shutdown(&self.fd, Shutdown::Write).map_err(|errno| Error::Call {
            peer: self.peer,
            attempt: "end the stream",
            errno,
        })
    }

    /// TCP_INFO, now.
    ///
    /// # Errors
    /// The kernel refuses to tell.
    pub fn info(&self) -> Result<sonde_sys::socket::TcpInfo> {
        Ok(sonde_sys::socket::tcp_info(&self.fd)?)
    }
}

impl AsFd for Tcp {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Channel for Tcp {
    #[inline]
    fn send(&mut self, message: &[u8]) -> Result<()> {
        if self.ring.is_some() {
            return self.by_ring(&mut [Call::Send(message)]);
        }
        let mut sent = 0;
        while sent < message.len() {
            sent += self.send_some(&message[sent..])?;
        }
        Ok(())
    }

    #[inline]
    fn recv(&mut self, message: &mut [u8]) -> Result<()> {
        if self.ring.is_some() {
            return self.by_ring(&mut [Call::Recv(message)]);
        }
        let wanted = message.len();
        let mut received = 0;
        while received < wanted {
            match self.recv_some(&mut message[received..])? {
                0 => {
                    return Err(Error::Closed {
                        peer: self.peer,
                        awaited: "a message",
                        received,
                        wanted,
                    });
                }
                some => received += some,
            }
        }
        Ok(())
    }

    #[inline]
    fn exchange(&mut self, ping: &[u8], pong: &mut [u8]) -> Result<u32> {
        if self.ring.is_some() {
            self.by_ring(&mut [Call::Send(ping), Call::Recv(pong)])?;
            return Ok(0);
        }
        self.send(ping)?;
        self.recv(pong)?;
        Ok(0)
    }

    fn settings(&self) -> Result<Socket> {
        read_back(&self.fd, &self.options, Path::Tcp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Acceptor;
    use crate::payload;
    use sonde_measure::Knobs;

    fn options(wait: Wait, timeout_ms: u64) -> Options {
        Options {
            timeout: Duration::from_millis(timeout_ms),
            ..Options::new(wait)
        }
    }

    fn pair(wait: Wait, timeout_ms: u64) -> (Tcp, Tcp) {
        let mut acceptor =
            Acceptor::bind("127.0.0.1:0".parse().unwrap(), options(wait, timeout_ms)).unwrap();
        let client = Tcp::connect(acceptor.local(), options(wait, timeout_ms)).unwrap();
        let server = acceptor
            .accept(None, Duration::from_secs(5))
            .unwrap()
            .unwrap();
        (client, server)
    }

    #[test]
    fn messages_cross_and_settings_are_read_back() {
        for wait in [Wait::Block, Wait::Poll] {
            let (mut client, mut server) = pair(wait, 5_000);
            let echo = std::thread::spawn(move || {
                let mut message = vec![0; 300_000];
                server.recv(&mut message).unwrap();
                server.send(&message).unwrap();
                (
                    server.recv(&mut message).unwrap_err(),
                    server.settings().unwrap(),
                )
            });
            let ping = payload::message(300_000);
            let mut pong = vec![0; 300_000];
            assert_eq!(client.exchange(&ping, &mut pong).unwrap(), 0);
            assert_eq!(payload::verify(&pong, 0), Ok(()));
            let settings = client.settings().unwrap();
            assert_eq!(
                (settings.nodelay, settings.send_buffer.unwrap().asked_bytes),
                (Some(true), None)
            );
            assert!(settings.mss_bytes > Some(500) && settings.congestion.is_some());
            client.end().unwrap();
            let (error, server_settings) = echo.join().unwrap();
            assert!(error.is_end(), "{error}");
            assert_eq!(server_settings.nodelay, Some(true));
        }
    }

    #[test]
    fn buffers_are_asked_for_and_inherited() {
        let asked = Options {
            knobs: Knobs {
                send_buffer_bytes: Some(40_000),
                recv_buffer_bytes: Some(50_000),
                ..Knobs::default()
            },
            ..options(Wait::Block, 1_000)
        };
        let mut acceptor = Acceptor::bind("127.0.0.1:0".parse().unwrap(), asked.clone()).unwrap();
        let client = Tcp::connect(acceptor.local(), asked).unwrap();
        let server = acceptor
            .accept(None, Duration::from_secs(5))
            .unwrap()
            .unwrap();
        for end in [client, server] {
            let settings = end.settings().unwrap();
            assert_eq!(
                settings.send_buffer,
                Some(sonde_measure::Buffer {
                    asked_bytes: Some(40_000),
                    granted_bytes: 40_000
                })
            );
            assert_eq!(settings.recv_buffer.unwrap().granted_bytes, 50_000);
        }
        let unknown = Options {
            knobs: Knobs {
                congestion: Some("no_such".into()),
                ..Knobs::default()
            },
            ..options(Wait::Block, 1_000)
        };
        assert!(
            Tcp::connect(acceptor.local(), unknown)
                .unwrap_err()
                .to_string()
                .contains("no_such")
        );
    }

    #[test]
    fn every_wait_ends() {
        for wait in [Wait::Block, Wait::Poll] {
            let (mut client, _server) = pair(wait, 60);
            let error = client.recv(&mut [0; 64]).unwrap_err().to_string();
            assert!(
                error.contains("127.0.0.1:") && error.contains("waited 0.060 s for 64 bytes"),
                "{error}"
            );
            // Nobody reads: the buffers fill and the send gives up.
            let message = vec![0; 1 << 20];
            let error = (0..1_000)
                .find_map(|_| client.send(&message).err())
                .unwrap()
                .to_string();
            assert!(error.contains("for room to send"), "{error}");
        }
        let mut acceptor =
            Acceptor::bind("127.0.0.1:0".parse().unwrap(), options(Wait::Block, 60)).unwrap();
        let error = acceptor
            .accept(None, Duration::from_millis(60))
            .unwrap_err();
        assert!(error.to_string().contains("for a connection"), "{error}");
    }

    #[test]
    fn a_wait_for_a_connection_can_be_stopped() {
        let mut acceptor =
            Acceptor::bind("127.0.0.1:0".parse().unwrap(), options(Wait::Block, 60)).unwrap();
        let (reader, writer) = std::os::unix::net::UnixStream::pair().unwrap();
        drop(writer);
        assert!(
            acceptor
                .accept(Some(reader.as_fd()), Duration::from_secs(60))
                .unwrap()
                .is_none()
        );
    }

    #[test]
    fn a_closed_peer_is_named() {
        let (mut client, mut server) = pair(Wait::Block, 5_000);
        server.send(&[1; 10]).unwrap();
        drop(server);
        let error = client.recv(&mut [0; 64]).unwrap_err();
        assert!(
            error.to_string().contains("after 10 of 64 bytes") && !error.is_end(),
            "{error}"
        );
        let closed = Acceptor::bind("127.0.0.1:0".parse().unwrap(), options(Wait::Block, 60))
            .unwrap()
            .local();
        let error = Tcp::connect(closed, options(Wait::Block, 1_000)).unwrap_err();
        assert!(
            error.to_string().contains("cannot connect")
                && error.remedy().contains("nothing listens"),
            "{error}"
        );
        let error =
            Acceptor::bind("192.0.2.1:0".parse().unwrap(), options(Wait::Block, 60)).unwrap_err();
        assert!(error.to_string().contains("192.0.2.1"), "{error}");
    }
}
