//! Memory shared by two processes of one machine: messages through a ring, or a segment with a flag, each way.
//!
//! Model:   who serves creates the memory for each connection and hands it over through the connection's UNIX socket, with a
//!          line that says how it is laid out; both ends must have been set alike. After that the socket carries nothing:
//!          its hang-up says that the other process is gone. While nobody is waited for there is no system call, no
//!          lock and no allocation; by `poll` none at all but a look at the socket once a millisecond.
//! Units:   bytes.
//! Checked: `messages_cross_whole_and_in_place`, `every_wait_mixes_with_every_other`, `a_killed_peer_is_noticed`,
//!          `an_end_and_a_silence_are_apart`, `other_settings_are_refused`.

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use sonde_sys::shared::{self, Shared};
use sonde_sys::socket::TcpInfo;

use crate::lookout::{Lookout, Waited};
use crate::ring::{self, Reader, Writer};
use crate::segment::{self, Segments};
use crate::unix::{self, UnixPort};
use crate::wait::bound_recv;
use crate::{ByteStream, Channel, Error, Listener, Options, Result, TurnedAway};
use sonde_measure::{Buffer, Method, Socket};

/// Segments have room for at least a hello.
const ROOM_BYTES_MIN: usize = 16 << 10;
const GREETING_BYTES_MAX: usize = 128;

/// How the memory is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    Rings,
    Segments { room: usize },
}

impl Layout {
    fn of(options: &Options) -> Self {
        match options.method {
            Method::Segment => Self::Segments {
                room: options.message_bytes.max(ROOM_BYTES_MIN),
            },
            _ => Self::Rings,
        }
    }

    /// Bytes of one way.
    fn way(self) -> usize {
        match self {
            Self::Rings => ring::RING_BYTES,
            Self::Segments { room } => segment::segment_bytes(room),
        }
    }

    /// What both ends must have alike, in words.
    fn greeting(self, align: usize) -> String {
        format!("sonde shm 1 {self:?} align {align}")
    }
}

#[derive(Debug)]
enum Ways {
    Rings(Box<(Writer, Reader)>),
    Segments(Box<Segments>),
}

/// One end of shared memory.
#[derive(Debug)]
pub struct Shm {
    ways: Ways,
    layout: Layout,
    peer: SocketAddr,
    options: Options,
}

fn align(options: &Options) -> usize {
    options.knobs.align.unwrap_or(0) as usize % shared::LINE_BYTES
}

impl Shm {
    fn new(
        memory: Shared,
        control: OwnedFd,
        options: &Options,
        peer: SocketAddr,
        serves: bool,
    ) -> Self {
        let layout = Layout::of(options);
        let (memory, align) = (Arc::new(memory), align(options));
        let lookout = Lookout {
            wait: options.wait,
            timeout: options.timeout,
            control: Arc::new(control),
        };
        // The first way leads to who serves.
        let (out, own) = if serves {
            (layout.way(), 0)
        } else {
            (0, layout.way())
        };
        let ways = match layout {
            Layout::Rings => Ways::Rings(Box::new((
                Writer::new(memory.clone(), out, align, lookout.clone()),
                Reader::new(memory, own, align, lookout),
            ))),
            Layout::Segments { room } => Ways::Segments(Box::new(Segments::new(
                memory,
                [out, own],
                (room, align),
                lookout,
            ))),
        };
        Self {
            ways,
            layout,
            peer,
            options: options.clone(),
        }
    }

    #[cold]
    fn failed(&self, waited: Waited, attempt: &'static str, awaited: String) -> Error {
        match waited {
            Waited::Silence => Error::Timeout {
                peer: self.peer,
                awaited,
                waited: self.options.timeout,
            },
            _ => Error::Call {
                peer: self.peer,
                attempt,
                errno: Errno::CONNRESET,
            },
        }
    }

    #[inline]
    fn await_bytes(&mut self, wanted: usize) -> Result<Waited> {
        let waited = match &mut self.ways {
            Ways::Rings(ways) => ways.1.await_bytes()?,
            Ways::Segments(segments) => segments.await_bytes()?,
        };
        match waited {
            Waited::Ready | Waited::Ended => Ok(waited),
            waited => Err(self.failed(waited, "receive", format!("{wanted} bytes"))),
        }
    }

    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        match &mut self.ways {
            Ways::Rings(ways) => ways.1.read(buffer),
            Ways::Segments(segments) => segments.read(buffer),
        }
    }
}

impl Drop for Shm {
    fn drop(&mut self) {
        // The peer hears an end, not a death. It fails only where there is no futex, and then the hang-up tells.
        drop(self.end());
    }
}

impl Channel for Shm {
    #[inline]
    fn send(&mut self, message: &[u8]) -> Result<()> {
        let waited = match &mut self.ways {
            Ways::Rings(ways) => ways.0.write(message)?,
            Ways::Segments(segments) => segments.write(message)?,
        };
        if waited == Waited::Ready {
            return Ok(());
        }
        let awaited = format!("room to send {} bytes", message.len());
        Err(self.failed(waited, "send", awaited))
    }

    #[inline]
    fn recv(&mut self, message: &mut [u8]) -> Result<()> {
        let wanted = message.len();
        let mut received = 0;
        while received < wanted {
            if self.await_bytes(wanted - received)? == Waited::Ended {
                return Err(Error::Closed {
                    peer: self.peer,
                    awaited: "a message",
                    received,
                    wanted,
                });
            }
            received += self.read(&mut message[received..])?;
        }
        Ok(())
    }

    fn settings(&self) -> Result<Socket> {
        let bytes = match self.layout {
            Layout::Rings => ring::AREA_BYTES,
            Layout::Segments { room } => room,
        };
        let buffer = Buffer {
            asked_bytes: Some(bytes),
            granted_bytes: bytes,
        };
        Ok(Socket {
            send_buffer: Some(buffer),
            recv_buffer: Some(buffer),
            ..Socket::default()
        })
    }
}

impl ByteStream for Shm {
    fn connect(peer: SocketAddr, options: Options) -> Result<Self> {
        let layout = Layout::of(&options);
        let failed = |attempt| {
            move |errno| match errno {
                Errno::AGAIN => Error::Timeout {
                    peer,
                    awaited: "shared memory to be handed over".into(),
                    waited: options.timeout,
                },
                errno => Error::Call {
                    peer,
                    attempt,
                    errno,
                },
            }
        };
        let control = unix::dial(peer, &options)?;
        bound_recv(&control, options.timeout).map_err(failed("bound receives"))?;
        let mut greeting = [0; GREETING_BYTES_MAX];
        let taken = shared::take_over(&control, &mut greeting);
        let (count, memory) = taken.map_err(failed("take shared memory over"))?;
        let (said, own) = (
            String::from_utf8_lossy(&greeting[..count]),
            layout.greeting(align(&options)),
        );
        let Some(memory) = memory.filter(|_| said == own) else {
            return Err(Error::Nonsense {
                what: format!("shared memory laid out as `{said}`, not `{own}`"),
            });
        };
        let memory = Shared::open(memory, 2 * layout.way())?;
        Ok(Self::new(memory, control, &options, peer, false))
    }

    fn peer(&self) -> SocketAddr {
        self.peer
    }

    #[inline]
    fn send_some(&mut self, bytes: &[u8]) -> Result<usize> {
        self.send(bytes)?;
        Ok(bytes.len())
    }

    #[inline]
    fn recv_some(&mut self, buffer: &mut [u8]) -> Result<usize> {
        match self.await_bytes(buffer.len())? {
            Waited::Ended => Ok(0),
            _ => self.read(buffer),
        }
    }

    fn recv_now(&mut self, buffer: &mut [u8]) -> Result<Option<usize>> {
        let (is_ended, is_next) = match &self.ways {
            Ways::Rings(ways) => (ways.1.is_ended(), ways.1.is_next()),
            Ways::Segments(segments) => (segments.is_ended(), segments.is_next()),
        };
        match (is_next, is_ended) {
            (true, _) => self.read(buffer).map(Some),
            (false, true) => Ok(Some(0)),
            (false, false) => Ok(None),
        }
    }

    fn end(&mut self) -> Result<()> {
        match &mut self.ways {
            Ways::Rings(ways) => ways.0.end(),
            Ways::Segments(segments) => segments.end(),
        }
    }

    fn end_in_silence(&mut self) -> Result<()> {
        unix::silent(self)
    }

    fn account(&self) -> Result<Option<TcpInfo>> {
        Ok(None)
    }

    fn options(&self) -> &Options {
        &self.options
    }
}

/// Where shared memory is handed over.
#[derive(Debug)]
pub struct ShmPort {
    port: UnixPort,
}

impl ShmPort {
    /// Listens under a number that nobody has taken.
    ///
    /// # Errors
    /// Those of [`UnixPort::bind`].
    pub fn bind(options: Options) -> Result<Self> {
        Ok(Self {
            port: UnixPort::bind(options)?,
        })
    }
}

impl AsFd for ShmPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.port.as_fd()
    }
}

impl Listener for ShmPort {
    type Stream = Shm;

    fn local(&self) -> SocketAddr {
        self.port.local()
    }

    fn accept(&mut self, stop: Option<BorrowedFd<'_>>, timeout: Duration) -> Result<Option<Shm>> {
        loop {
            let Some(control) = self.port.accept_socket(stop, timeout)? else {
                return Ok(None);
            };
            let options = self.port.options();
            let layout = Layout::of(options);
            let (memory, fd) = Shared::create(2 * layout.way())?;
            let greeting = layout.greeting(align(options));
            // Who is gone already does not take it: the next one may.
            if shared::hand_over(&control, greeting.as_bytes(), &fd).is_ok() {
                let shm = Shm::new(memory, control, options, self.local(), true);
                return Ok(Some(shm));
            }
        }
    }

    fn turned_away(&mut self) -> TurnedAway {
        self.port.turned_away()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload;
    use sonde_measure::{Knobs, Wait};

    fn options(method: Method, wait: Wait, align: Option<u32>) -> Options {
        Options {
            method,
            knobs: Knobs {
                align,
                ..Knobs::default()
            },
            timeout: Duration::from_secs(20),
            ..Options::new(wait)
        }
    }

    fn pair(client: Options, server: Options) -> (Shm, Shm) {
        let mut port = ShmPort::bind(server).unwrap();
        let peer = port.local();
        std::thread::scope(|scope| {
            let client = scope.spawn(move || Shm::connect(peer, client).unwrap());
            let server = port.accept(None, Duration::from_secs(20)).unwrap().unwrap();
            (client.join().unwrap(), server)
        })
    }

    /// Round trips of many sizes, every byte checked at both ends.
    fn converse(mut client: Shm, mut server: Shm, turns: u32) {
        let sizes = [
            1, 8, 47, 48, 49, 56, 57, 64, 1_000, 16_384, 16_385, 70_000, 300_000,
        ];
        let size = move |turn: u32| sizes[turn as usize % sizes.len()];
        let echo = std::thread::spawn(move || {
            for turn in 0..turns {
                let mut message = vec![0; size(turn)];
                server.recv(&mut message).unwrap();
                payload::verify(&message, turn).unwrap();
                server.send(&message).unwrap();
            }
            server.recv(&mut [0]).unwrap_err()
        });
        for turn in 0..turns {
            let mut ping = payload::message(size(turn));
            payload::stamp(&mut ping, turn);
            let mut pong = vec![0; ping.len()];
            client.exchange(&ping, &mut pong).unwrap();
            payload::verify(&pong, turn).unwrap();
        }
        drop(client);
        let error = echo.join().unwrap();
        assert!(error.is_end(), "{error}");
    }

    #[test]
    fn every_wait_mixes_with_every_other() {
        for method in [Method::Plain, Method::Segment] {
            for (one, other, align) in [
                (Wait::Block, Wait::Block, None),
                (Wait::Block, Wait::Poll, Some(1)),
                (Wait::Poll, Wait::Block, Some(63)),
            ] {
                let (client, server) =
                    pair(options(method, one, align), options(method, other, align));
                converse(client, server, 300);
            }
        }
    }

    #[test]
    fn messages_cross_whole() {
        for method in [Method::Plain, Method::Segment] {
            let options = options(method, Wait::Block, None);
            let (mut client, mut server) = pair(options.clone(), options);
            assert!(
                client
                    .settings()
                    .unwrap()
                    .send_buffer
                    .unwrap()
                    .granted_bytes
                    >= 64 << 10
            );
            for (sequence, size) in [(0, 4), (1, 40), (2, 60_000), (3, 100_000)] {
                let mut message = payload::message(size);
                payload::stamp(&mut message, sequence);
                let sender = std::thread::spawn(move || {
                    server.send(&message).unwrap();
                    server
                });
                let mut came = vec![0xee; size];
                client.recv(&mut came).unwrap();
                server = sender.join().unwrap();
                payload::verify(&came, sequence).unwrap();
            }
        }
    }

    #[test]
    fn a_killed_peer_is_noticed() {
        for method in [Method::Plain, Method::Segment] {
            for wait in [Wait::Poll, Wait::Block] {
                let mut port = ShmPort::bind(options(method, wait, None)).unwrap();
                let dead = options(method, wait, None);
                let control = unix::dial(port.local(), &dead).unwrap();
                let mut server = port.accept(None, Duration::from_secs(5)).unwrap().unwrap();
                // The kernel closes a killed process's socket, and nobody says an end.
                drop(control);
                let begin = std::time::Instant::now();
                let error = server.recv(&mut [0; 8]).unwrap_err();
                assert!(
                    matches!(error, Error::Call { attempt: "receive", errno, .. } if errno == Errno::CONNRESET),
                    "{error}"
                );
                let message = vec![0; 1 << 20];
                let error = server.send(&message).unwrap_err();
                assert!(error.to_string().contains("cannot send"), "{error}");
                assert!(begin.elapsed() < Duration::from_secs(15));
            }
        }
    }

    #[test]
    fn an_end_and_a_silence_are_apart() {
        for method in [Method::Plain, Method::Segment] {
            // The wait for the segment is as long, of which a busy machine takes some 10 ms.
            let short = Options {
                timeout: Duration::from_secs(1),
                ..options(method, Wait::Block, None)
            };
            let (mut client, mut server) = pair(short.clone(), short);
            let error = client.recv(&mut [0; 8]).unwrap_err();
            assert!(matches!(error, Error::Timeout { .. }), "{error}");
            assert_eq!(server.recv_now(&mut [0; 8]).unwrap(), None);
            client.send(&[5]).unwrap();
            client.end().unwrap();
            assert_eq!(server.recv_now(&mut [0; 8]).unwrap(), Some(1));
            assert_eq!(server.recv_now(&mut [0; 8]).unwrap(), Some(0));
            server.send(&[6]).unwrap();
            server.end_in_silence().unwrap();
            assert_eq!(client.recv_some(&mut [0; 8]).unwrap(), 1);
            assert_eq!(client.recv_some(&mut [0; 8]).unwrap(), 0);
        }
    }

    #[test]
    fn other_settings_are_refused() {
        let usual = |align| options(Method::Plain, Wait::Block, align);
        for (client, words) in [
            (usual(Some(3)), "align 0`, not `sonde shm 1 Rings align 3"),
            (options(Method::Segment, Wait::Block, None), "Segments"),
        ] {
            let mut port = ShmPort::bind(usual(None)).unwrap();
            let peer = port.local();
            let accepting = std::thread::spawn(move || {
                port.accept(None, Duration::from_secs(20))
                    .unwrap()
                    .is_some()
            });
            let error = Shm::connect(peer, client).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
            assert!(accepting.join().unwrap());
        }
    }
}
