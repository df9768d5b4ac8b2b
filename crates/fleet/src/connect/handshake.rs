//! The first words of a connection back: proofs of the token both ways, then who comes and what becomes of it.
//!
//! Model:   the listening side sends its name and a nonce; the peer its name, a nonce and its proof; then the listening side
//!          its proof. All of that has a fixed length, so that a stranger can announce nothing. Only then the peer says
//!          in a frame who it is, and is told in a frame what it is to do. The whole has one deadline, however slowly it
//!          comes, and the listening side waits for nobody: [`judge`] says of what has come how much is wanted next. The stream
//!          is not encrypted: who can change packets on the way could take a connection over after its proofs, as with every
//!          plain control connection of a resource manager.
//! Checked: `both_ends_know_each_other`, `a_stranger_is_refused`; `tests/connect.rs` with hostile peers.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

use std::io::{Error, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::net::sockopt;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sonde_channel::{Woken, readable};
use sonde_probe::frame;

use super::token::{NONCE_BYTES, PROOF_BYTES, Role, Token, random, same};

const HOST_WORD: &[u8; 13] = b"sonde-root/1\n";
const PEER_WORD: &[u8; 13] = b"sonde-join/1\n";
/// A hello, and what is said to one, are no longer than this.
const WORDS_BYTES_MAX: u64 = 4 << 10;
/// A peer that takes or gives nothing for so long within a message is given up.
const STALL_MAX: Duration = Duration::from_secs(15);

/// Who comes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) struct Hello {
    /// The host, as its resource manager names it, else as it names itself.
    pub name: String,
    /// What no other machine has: its boot and network namespace.
    pub machine: String,
    /// Its number among those that were started together.
    pub rank: u32,
    /// How many were started together, where that is known.
    pub size: Option<u32>,
    /// Its own end of the connection.
    pub address: IpAddr,
    /// Of the program.
    pub version: String,
    /// What a relay's peer was given by the orchestrator.
    pub ticket: Option<u32>,
}

/// What it is to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Welcome {
    /// Be an agent on this connection.
    Stay {},
    /// Be an agent, and open a port for others; see [`super::relay`].
    Relay {},
    /// Connect to this relay instead.
    Under {
        /// Where it listens.
        relay: SocketAddr,
        /// To be shown there.
        ticket: u32,
    },
    /// End: another agent of this host is there already, or this one is of no use.
    Go {
        /// Why.
        why: String,
        /// Whether that is a failure.
        refused: bool,
    },
}

/// A relay's port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RelayPort {
    /// TCP.
    pub port: u16,
}

/// A stream whose reads end with a deadline.
struct Timed<'a> {
    stream: &'a TcpStream,
    end: Instant,
}

impl Read for Timed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let left = self.end.saturating_duration_since(Instant::now());
        match readable(&[self.stream.as_fd()], left)? {
            Woken::Readable(_) => (&mut &*self.stream).read(buffer),
            Woken::Silence => Err(ErrorKind::TimedOut.into()),
        }
    }
}

fn refused(what: &str) -> Error {
    Error::new(ErrorKind::PermissionDenied, what.to_owned())
}

/// Makes a connection notice within seconds that its other end is gone, and small messages leave at once.
pub(super) fn settle(stream: &TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(STALL_MAX))?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, Duration::from_secs(5))?;
    sockopt::set_tcp_keepintvl(stream, Duration::from_secs(3))?;
    sockopt::set_tcp_keepcnt(stream, 3)?;
    Ok(sockopt::set_tcp_user_timeout(
        stream,
        STALL_MAX.as_millis() as u32,
    )?)
}

/// What the listening side sent a peer, to be proved.
pub(super) type Nonce = [u8; NONCE_BYTES];

/// The bytes of a peer's word, which it says first.
pub(super) const WORD_BYTES: usize = PEER_WORD.len();
/// With its nonce and proof.
const PROVED_BYTES: usize = WORD_BYTES + NONCE_BYTES + PROOF_BYTES;
/// Of all that a peer says before it is welcome.
pub(super) const BYTES_MAX: usize = PROVED_BYTES + WORDS_BYTES_MAX as usize;
/// Of a frame's length.
const LENGTH_BYTES: usize = 4;

/// What to make of a peer's first bytes.
#[derive(Debug)]
pub(super) enum Part {
    /// So many more are wanted.
    Wants(usize),
    /// It has shown the token, and this is who it is.
    Hello(Hello),
}

/// Begins the listening side's part. Nothing of it waits: what is sent here is short.
pub(super) fn greet(stream: &TcpStream) -> std::io::Result<Nonce> {
    settle(stream)?;
    let host: Nonce = random().map_err(Error::other)?;
    (&mut &*stream).write_all(&[&HOST_WORD[..], &host].concat())?;
    Ok(host)
}

/// Goes on with it, by all that the peer has said: it is shown the token when it has shown it.
pub(super) fn judge(
    stream: &TcpStream,
    host: &Nonce,
    token: &Token,
    said: &[u8],
) -> std::io::Result<Part> {
    let wants = |bytes: usize| Ok(Part::Wants(bytes.saturating_sub(said.len())));
    let Some((word, rest)) = said.split_first_chunk() else {
        return wants(WORD_BYTES);
    };
    if word != PEER_WORD {
        return Err(refused("protocol violation: it does not speak as an agent"));
    }
    let Some((peer, rest)) = rest.split_first_chunk::<NONCE_BYTES>() else {
        return wants(PROVED_BYTES);
    };
    let Some((proof, hello)) = rest.split_first_chunk::<PROOF_BYTES>() else {
        return wants(PROVED_BYTES);
    };
    if !same(proof, &token.proof(Role::Peer, peer, host)) {
        return Err(refused("it has another token"));
    }
    if hello.is_empty() {
        (&mut &*stream).write_all(&token.proof(Role::Host, peer, host))?;
    }
    let Some((length, body)) = hello.split_first_chunk::<LENGTH_BYTES>() else {
        return wants(PROVED_BYTES + LENGTH_BYTES);
    };
    let length = u32::from_be_bytes(*length) as usize;
    if body.len() < length {
        return Ok(Part::Wants(length.saturating_sub(body.len())));
    }
    frame::parse(body).map(Part::Hello).map_err(Error::other)
}

/// The peer's part, until it knows that it is where it belongs.
pub(super) fn introduce(stream: &TcpStream, token: &Token, end: Instant) -> std::io::Result<()> {
    settle(stream)?;
    let peer: [u8; NONCE_BYTES] = random().map_err(Error::other)?;
    let mut timed = Timed { stream, end };
    let (mut word, mut host, mut proof) = ([0; 13], [0; NONCE_BYTES], [0; PROOF_BYTES]);
    timed.read_exact(&mut word)?;
    if word != *HOST_WORD {
        return Err(refused("no sonde of this version listens there"));
    }
    timed.read_exact(&mut host)?;
    let own = token.proof(Role::Peer, &peer, &host);
    (&mut &*stream).write_all(&[&PEER_WORD[..], &peer, &own].concat())?;
    timed
        .read_exact(&mut proof)
        .map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset => {
                refused("it took the token for another run's")
            }
            _ => error,
        })?;
    if same(&proof, &token.proof(Role::Host, &peer, &host)) {
        Ok(())
    } else {
        Err(refused("it does not have the token itself"))
    }
}

/// Says something to one that has shown the token.
pub(super) fn say(stream: &TcpStream, words: &impl Serialize) -> std::io::Result<()> {
    frame::write(&mut &*stream, words).map_err(Error::other)
}

/// Hears what one says that has shown the token.
pub(super) fn hear<T: DeserializeOwned>(stream: &TcpStream, end: Instant) -> std::io::Result<T> {
    let body = frame::read(&mut Timed { stream, end }.take(WORDS_BYTES_MAX));
    match body.map_err(plain)? {
        Some(body) => frame::parse(&body).map_err(Error::other),
        None => Err(ErrorKind::UnexpectedEof.into()),
    }
}

fn plain(error: frame::FrameError) -> Error {
    match error {
        frame::FrameError::Stream(error) => error,
        other => Error::other(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn ends() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near, listener.accept().unwrap().0)
    }

    /// The listening side's part, byte by byte.
    fn heard(stream: &TcpStream, token: &Token) -> std::io::Result<Hello> {
        let nonce = greet(stream)?;
        let mut said = Vec::new();
        loop {
            match judge(stream, &nonce, token, &said)? {
                Part::Hello(hello) => return Ok(hello),
                Part::Wants(more) => {
                    assert!(more > 0);
                    let mut byte = [0];
                    (&mut &*stream).read_exact(&mut byte)?;
                    said.extend(byte);
                }
            }
        }
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(5)
    }

    #[test]
    fn both_ends_know_each_other() {
        let (peer, host) = ends();
        let token = Token::random().unwrap();
        let theirs = token.clone();
        let hello = Hello {
            name: "n1".into(),
            machine: "m".into(),
            rank: 3,
            size: Some(4),
            address: "10.0.0.1".parse().unwrap(),
            version: "0".into(),
            ticket: None,
        };
        let said = hello.clone();
        let thread = std::thread::spawn(move || {
            introduce(&peer, &theirs, soon()).unwrap();
            say(&peer, &said).unwrap();
            hear::<Welcome>(&peer, soon()).unwrap()
        });
        assert_eq!(heard(&host, &token).unwrap(), hello);
        say(&host, &Welcome::Stay {}).unwrap();
        assert_eq!(thread.join().unwrap(), Welcome::Stay {});
    }

    #[test]
    fn a_stranger_is_refused() {
        let token = Token::random().unwrap();
        // Another token: each end says so.
        let (peer, host) = ends();
        let thread = std::thread::spawn(move || {
            introduce(&peer, &Token::random().unwrap(), soon()).unwrap_err()
        });
        let said = heard(&host, &token).unwrap_err();
        assert_eq!(said.to_string(), "it has another token");
        drop(host);
        assert_eq!(thread.join().unwrap().kind(), ErrorKind::PermissionDenied);
        // What was heard once is of no use again, since the nonce is another.
        let (peer, host) = ends();
        let replayed = [
            &PEER_WORD[..],
            &[7; 16],
            &token.proof(Role::Peer, &[7; 16], &[8; 16]),
        ]
        .concat();
        (&mut &peer).write_all(&replayed).unwrap();
        assert!(heard(&host, &token).is_err());
        // One that listens without the token is not obeyed.
        let (peer, host) = ends();
        (&mut &host)
            .write_all(&[&HOST_WORD[..], &[1; 16], &[2; 32]].concat())
            .unwrap();
        assert!(introduce(&peer, &token, soon()).is_err());
        // Silence ends with the deadline.
        let (_peer, host) = ends();
        let end = Instant::now() + Duration::from_millis(50);
        let silence = introduce(&host, &token, end).unwrap_err();
        assert_eq!(silence.kind(), ErrorKind::TimedOut);
        // A hello may not announce more than its share.
        let (peer, host) = ends();
        (&mut &peer).write_all(&[0, 1, 0, 0]).unwrap();
        (&mut &peer).write_all(&[b' '; 8 << 10]).unwrap();
        assert!(hear::<Hello>(&host, soon()).is_err());
    }
}
