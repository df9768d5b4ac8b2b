//! Messages by a ring shared with the kernel: small ones many in a chain, and round trips in one.
//!
//! Model:   a chain of sends has whole messages, each with its number, up to 256 KiB; a larger message goes alone, in pieces.
//!          A round trip is a send and a receive in one chain, so that it takes one call into the kernel.
//! Checked: `outlet::tests`, `round_trips_in_a_ring`.

use std::ops::Range;

use rustix::io::Errno;
use sonde_sys::uring::{CHAIN_MAX, Call, Ring};

use crate::{Error, Result, Tcp, payload};
use sonde_measure::{Transfer, Wait};

const CHAIN_BYTES_MAX: usize = 256 << 10;

/// The sending end of a stream.
#[derive(Debug)]
pub(crate) struct Chain {
    ring: Ring,
    messages: Vec<u8>,
    size_bytes: usize,
}

/// What the results of a chain of sends came to: bytes in order, or why there are none.
fn sent(channel: &Tcp, results: &[i32], wanted: &[usize]) -> Result<usize> {
    let mut bytes = 0;
    for (result, wanted) in results.iter().zip(wanted) {
        match usize::try_from(*result) {
            Ok(some) => bytes += some,
            Err(_) if bytes > 0 => break,
            Err(_) if *result == -Errno::CANCELED.raw_os_error() => {
                return Err(channel.silence(format!("room to send {wanted} bytes")));
            }
            Err(_) => {
                return Err(Error::Call {
                    peer: channel.peer,
                    attempt: "send by io_uring",
                    errno: Errno::from_raw_os_error(-*result),
                });
            }
        }
        // The chain ends with a call that was cut short.
        if usize::try_from(*result) != Ok(*wanted) {
            break;
        }
    }
    Ok(bytes)
}

impl Chain {
    pub(crate) fn new(channel: &Tcp, size_bytes: usize) -> Result<Self> {
        let ring = Ring::new(channel.options.wait == Wait::Poll)?;
        let count = (CHAIN_BYTES_MAX / size_bytes).clamp(1, CHAIN_MAX);
        Ok(Self {
            ring,
            messages: payload::message(size_bytes).repeat(count),
            size_bytes,
        })
    }

    /// From within a message its rest; else a chain of whole ones, or the first piece of a large one.
    pub(crate) fn send_some(
        &mut self,
        channel: &mut Tcp,
        sequence: u32,
        part: Range<usize>,
    ) -> Result<usize> {
        let whole = part.len() == self.size_bytes;
        if part.start == 0 {
            for (index, message) in self.messages.chunks_exact_mut(self.size_bytes).enumerate() {
                payload::stamp(message, sequence.wrapping_add(index as u32));
            }
        } else {
            // Whichever of the chain was cut short: its number now is that of the first.
            payload::stamp(&mut self.messages[..self.size_bytes], sequence);
        }
        let messages = self.messages.chunks_exact(self.size_bytes);
        let mut calls: Vec<Call<'_>> = if whole {
            messages.map(Call::Send).collect()
        } else {
            vec![Call::Send(&self.messages[part.clone()])]
        };
        let wanted = vec![part.len(); calls.len()];
        let timeout = channel.options.timeout;
        let results = self
            .ring
            .chain(rustix::fd::AsFd::as_fd(&channel.fd), &mut calls, timeout)?;
        sent(channel, results, &wanted)
    }

    pub(crate) fn transfer(&self) -> Transfer {
        Transfer {
            uring_chain_messages: Some(self.messages.len() / self.size_bytes),
            ..Transfer::default()
        }
    }
}

impl Tcp {
    /// Does calls of whole messages in one chain; each is whole, or an error says why not.
    pub(crate) fn by_ring(&mut self, calls: &mut [Call<'_>]) -> Result<()> {
        let timeout = self.options.timeout;
        let Some(mut ring) = self.ring.take() else {
            unreachable!("only where a ring was set up");
        };
        let results = ring
            .chain(rustix::fd::AsFd::as_fd(&self.fd), calls, timeout)
            .map(<[i32]>::to_vec);
        self.ring = Some(ring);
        for (result, call) in results?.into_iter().zip(calls) {
            let (wanted, is_recv) = match call {
                Call::Send(bytes) => (bytes.len(), false),
                Call::Recv(bytes) => (bytes.len(), true),
            };
            match usize::try_from(result) {
                Ok(whole) if whole == wanted => {}
                // The end of the stream, or its last bytes.
                Ok(received) if is_recv => {
                    return Err(Error::Closed {
                        peer: self.peer,
                        awaited: "a message",
                        received,
                        wanted,
                    });
                }
                Ok(_) => return Err(self.silence(format!("room to send {wanted} bytes"))),
                Err(_) if result == -Errno::CANCELED.raw_os_error() => {
                    return Err(self.silence(format!("{wanted} bytes")));
                }
                Err(_) => {
                    return Err(Error::Call {
                        peer: self.peer,
                        attempt: if is_recv {
                            "receive by io_uring"
                        } else {
                            "send by io_uring"
                        },
                        errno: Errno::from_raw_os_error(-result),
                    });
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Acceptor, Channel, Options};
    use sonde_measure::Method;
    use std::time::Duration;

    #[test]
    fn round_trips_in_a_ring() {
        for wait in [Wait::Block, Wait::Poll] {
            let options = Options {
                timeout: Duration::from_millis(400),
                method: Method::Uring,
                ..Options::new(wait)
            };
            let mut acceptor =
                Acceptor::bind("127.0.0.1:0".parse().unwrap(), options.clone()).unwrap();
            let mut client = Tcp::connect(acceptor.local(), options).unwrap();
            let mut server = acceptor
                .accept(None, Duration::from_secs(5))
                .unwrap()
                .unwrap();
            if let Err(error) = client.use_method() {
                println!("skipped: {error}");
                return;
            }
            let echo = std::thread::spawn(move || {
                server.use_method().unwrap();
                for size in [1, 300_000] {
                    let mut message = vec![0; size];
                    server.recv(&mut message).unwrap();
                    server.send(&message).unwrap();
                }
                let mut rest = [0; 10];
                let error = server.recv(&mut rest).unwrap_err();
                assert!(error.to_string().contains("after 3 of 10"), "{error}");
                server
            });
            for size in [1, 300_000] {
                let mut pong = vec![0; size];
                client.exchange(&payload::message(size), &mut pong).unwrap();
                assert_eq!(payload::verify(&pong, 0), Ok(()));
            }
            client.send(&[1; 3]).unwrap();
            client.end().unwrap();
            let server = echo.join().unwrap();
            let error = client.recv(&mut [0; 8]).unwrap_err();
            assert!(error.to_string().contains("for 8 bytes"), "{error}");
            drop(server);
            assert!(client.recv(&mut [0; 8]).unwrap_err().is_end());
        }
    }
}
