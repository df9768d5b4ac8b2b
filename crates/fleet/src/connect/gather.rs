//! Who comes to an orchestrator, and where each belongs.
//!
//! Model:   complete is a run's set of hosts when all names that are known beforehand came; or so many as were asked for; or,
//!          where only the launcher knows, as many agents as each says were started, those of one host counted once.
//! Checked: `places_are_given_in_turn`; `tests/connect.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sonde_probe::AgentLink;

use super::DIRECT_MAX;
use super::handshake::{self, Hello, RelayPort, Welcome};
use super::line::Line;
use super::listener::{Listener, Peer};
use super::token::Token;
use super::trunk::{OWN, Trunk};
use crate::error::{FleetError, Result};

/// Between two looks at the launcher.
const LOOK: Duration = Duration::from_millis(100);
/// A relay opens its port within this.
const RELAY_TIMEOUT: Duration = Duration::from_secs(5);
/// An agent that was welcomed greets within this.
const GREETING: Duration = Duration::from_secs(20);

/// Who is to come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Expected {
    /// Hosts of these names.
    Names(Vec<String>),
    /// So many hosts.
    Count(usize),
    /// As many agents as each of them says were started.
    AsTold,
}

/// A host that came.
pub(crate) struct Member {
    pub name: String,
    pub address: IpAddr,
    pub link: AgentLink,
    pub line: Line,
}

/// One whose link is not open yet.
struct Seat {
    hello: Hello,
    line: Line,
}

/// A relay.
struct Relay {
    at: SocketAddr,
    trunk: Arc<Trunk>,
    below: usize,
}

/// An orchestrator that waits for its agents.
pub(crate) struct Assembly {
    listener: Listener,
    expected: Expected,
    seats: BTreeMap<String, Seat>,
    relays: Vec<Relay>,
    /// Agents that came, with those that were told to go.
    came: usize,
    /// What the first of them said of how many there are.
    told: Option<usize>,
    notes: BTreeSet<String>,
}

impl Assembly {
    /// Opens the port.
    ///
    /// # Errors
    /// It cannot be had.
    pub(crate) fn open(at: SocketAddr, token: &Token, expected: Expected) -> Result<Self> {
        Ok(Self {
            listener: Listener::open(at, token.clone())?,
            expected,
            seats: BTreeMap::new(),
            relays: Vec::new(),
            came: 0,
            told: None,
            notes: BTreeSet::new(),
        })
    }

    /// Where agents are to connect to.
    pub(crate) fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Waits until all are there; `over` tells why no more can come. What is to be known beside is in the second.
    ///
    /// # Errors
    /// Some did not come, or said nothing afterwards.
    pub(crate) fn gather(
        mut self,
        timeout: Duration,
        mut over: impl FnMut() -> Option<String>,
    ) -> Result<(Vec<Member>, Vec<String>)> {
        let end = Instant::now() + timeout;
        while !self.is_complete() {
            if let Some(peer) = self.listener.await_peer(LOOK) {
                self.admit(peer);
                continue;
            }
            let why = match over() {
                Some(why) => why,
                None if Instant::now() < end => continue,
                None => format!("waited {} s", timeout.as_secs()),
            };
            return Err(self.incomplete(&why));
        }
        let away = self.listener.strangers();
        if away.count > 0 {
            self.notes.insert(format!(
                "unauthenticated connections dropped: {}; the last: {}",
                away.count,
                away.last.unwrap_or_default()
            ));
        }
        let mut seats: Vec<Seat> = self.seats.into_values().collect();
        match &self.expected {
            Expected::Names(names) => {
                seats.sort_by_key(|seat| names.iter().position(|name| *name == seat.hello.name))
            }
            _ => seats.sort_by_key(|seat| (seat.hello.rank, natural(&seat.hello.name))),
        }
        let end = Instant::now() + GREETING;
        let opened = seats.into_iter().map(|seat| open(seat, end));
        Ok((
            opened.collect::<Result<_>>()?,
            self.notes.into_iter().collect(),
        ))
    }

    fn is_complete(&self) -> bool {
        match &self.expected {
            Expected::Names(names) => self.seats.len() == names.len(),
            Expected::Count(count) => self.seats.len() == *count,
            Expected::AsTold => self.told.is_some_and(|told| self.came >= told),
        }
    }

    /// How many hosts there may be.
    fn size(&self) -> usize {
        match &self.expected {
            Expected::Names(names) => names.len(),
            Expected::Count(count) => *count,
            Expected::AsTold => self.told.unwrap_or(0),
        }
    }

    fn incomplete(&self, why: &str) -> FleetError {
        let known = |name: &&String| !self.seats.contains_key(*name);
        let missing = match &self.expected {
            Expected::Names(names) => {
                let missing: Vec<&str> = names.iter().filter(known).map(String::as_str).collect();
                missing.join(", ")
            }
            _ => format!(
                "{} of {} agents",
                self.size().saturating_sub(self.came),
                self.size()
            ),
        };
        let missing = match self.size() {
            0 => "no agent came".into(),
            _ => format!("{missing} did not connect back"),
        };
        let away = self.listener.strangers();
        let mut happened = format!("{why}, and {missing} to {}", self.listener.address());
        if away.count > 0 {
            happened.push_str(&format!(
                "; unauthenticated connections dropped: {}, the last: {}",
                away.count,
                away.last.unwrap_or_default()
            ));
        }
        for note in &self.notes {
            happened.push_str(&format!("; {note}"));
        }
        let remedy =
            "let the hosts reach this port, or listen where they do: `--listen ADDRESS:PORT`";
        FleetError::of_all("gather the agents", happened, remedy)
    }

    /// Gives a peer its place; one that fails meanwhile has not come.
    fn admit(&mut self, peer: Peer) {
        self.told = self.told.or(peer.hello.size.map(|size| size as usize));
        if let Some((why, refused)) = self.objection(&peer.hello) {
            if refused {
                self.notes.insert(format!(
                    "an agent of {} was refused: {why}",
                    peer.hello.name
                ));
            } else {
                self.came += 1;
            }
            // It may be gone already.
            drop(handshake::say(&peer.stream, &Welcome::Go { why, refused }));
            return;
        }
        let name = peer.hello.name.clone();
        let seated = if self.seats.len() - self.below() >= DIRECT_MAX {
            self.send_on(peer)
        } else if self.size() > DIRECT_MAX {
            self.make_relay(peer)
        } else {
            handshake::say(&peer.stream, &Welcome::Stay {}).map(|()| Seat {
                hello: peer.hello,
                line: Line::Stream(peer.stream),
            })
        };
        match seated {
            Ok(seat) => {
                self.came += 1;
                self.seats.insert(name, seat);
            }
            Err(error) => {
                self.notes
                    .insert(format!("an agent of {name} was lost as it came: {error}"));
            }
        }
    }

    fn below(&self) -> usize {
        self.relays.iter().map(|relay| relay.below).sum()
    }

    /// Why a peer cannot stay, and whether that is a failure.
    fn objection(&self, hello: &Hello) -> Option<(String, bool)> {
        let own = env!("CARGO_PKG_VERSION");
        if hello.version != own {
            let why = format!(
                "it is sonde {}, the orchestrator {own}: run one version",
                hello.version
            );
            return Some((why, true));
        }
        if let Some(known) = self.seats.get(&hello.name) {
            return Some(if known.hello.machine == hello.machine {
                (format!("{} has an agent", hello.name), false)
            } else {
                let why = format!(
                    "two machines are called {}: give each agent a name of its own (`sonde agent --name NAME`)",
                    hello.name
                );
                (why, true)
            });
        }
        match &self.expected {
            Expected::Names(names) if !names.contains(&hello.name) => {
                Some((format!("{} is not of this allocation", hello.name), true))
            }
            _ => None,
        }
    }

    fn make_relay(&mut self, peer: Peer) -> std::io::Result<Seat> {
        let Peer { stream, hello } = peer;
        handshake::say(&stream, &Welcome::Relay {})?;
        let told: RelayPort = handshake::hear(&stream, Instant::now() + RELAY_TIMEOUT)?;
        let (trunk, lane) = Trunk::new(stream)?;
        let trunk = Arc::new(trunk);
        self.relays.push(Relay {
            at: SocketAddr::new(hello.address, told.port),
            trunk: Arc::clone(&trunk),
            below: 0,
        });
        let line = Line::Lane {
            trunk,
            lane,
            ticket: OWN,
        };
        Ok(Seat { hello, line })
    }

    /// Sends a peer to the relay with the fewest.
    fn send_on(&mut self, peer: Peer) -> std::io::Result<Seat> {
        let Peer { stream, hello } = peer;
        let relay = self.relays.iter_mut().min_by_key(|relay| relay.below);
        let relay = relay.expect("beyond so many hosts the first are relays");
        let ticket = u32::try_from(self.seats.len()).unwrap_or(OWN - 1);
        let lane = relay.trunk.lane(ticket)?;
        handshake::say(
            &stream,
            &Welcome::Under {
                relay: relay.at,
                ticket,
            },
        )?;
        relay.below += 1;
        let trunk = Arc::clone(&relay.trunk);
        Ok(Seat {
            hello,
            line: Line::Lane {
                trunk,
                lane,
                ticket,
            },
        })
    }
}

fn open(seat: Seat, end: Instant) -> Result<Member> {
    let name = seat.hello.name;
    // One that was awaited long enough by others' waits still gets a moment.
    let left = end.saturating_duration_since(Instant::now()).max(LOOK);
    let link = seat.line.open(&name, left).map_err(|error| {
        let remedy = match seat.line {
            Line::Stream(_) => "see what the launcher said of it",
            Line::Lane { .. } => {
                "beyond 64 hosts agents connect to each other: let the hosts reach each other's ports, or take 64 at most"
            }
        };
        FleetError::at(&name, "start its agent", error, remedy).and_lost()
    })?;
    Ok(Member {
        address: seat.hello.address,
        line: seat.line,
        link,
        name,
    })
}

/// A name with its numbers as numbers, for an order that people expect.
fn natural(name: &str) -> Vec<(String, u64)> {
    let mut parts: Vec<(String, u64)> = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let digits = rest
            .find(|letter: char| letter.is_ascii_digit())
            .unwrap_or(rest.len());
        let (text, after) = rest.split_at(digits);
        let end = after
            .find(|letter: char| !letter.is_ascii_digit())
            .unwrap_or(after.len());
        let (number, after) = after.split_at(end);
        parts.push((text.into(), number.parse().unwrap_or(0)));
        rest = after;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(name: &str, machine: &str, size: Option<u32>) -> Hello {
        Hello {
            name: name.into(),
            machine: machine.into(),
            rank: 0,
            size,
            address: "127.0.0.1".parse().unwrap(),
            version: env!("CARGO_PKG_VERSION").into(),
            ticket: None,
        }
    }

    /// What a peer with this hello is told; it stays connected.
    fn come(assembly: &mut Assembly, hello: Hello) -> (Welcome, std::net::TcpStream) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let far = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let stream = listener.accept().unwrap().0;
        if assembly.size() > DIRECT_MAX && assembly.relays.len() < DIRECT_MAX {
            handshake::say(&far, &RelayPort { port: 9 }).unwrap();
        }
        assembly.admit(Peer { stream, hello });
        let soon = Instant::now() + GREETING;
        (handshake::hear(&far, soon).unwrap(), far)
    }

    fn assembly(expected: Expected) -> Assembly {
        let token = Token::random().unwrap();
        Assembly::open("127.0.0.1:0".parse().unwrap(), &token, expected).unwrap()
    }

    #[test]
    fn places_are_given_in_turn() {
        let mut few = assembly(Expected::AsTold);
        assert!(!few.is_complete());
        assert_eq!(
            come(&mut few, hello("n1", "a", Some(3))).0,
            Welcome::Stay {}
        );
        let again = come(&mut few, hello("n1", "a", Some(3))).0;
        assert!(matches!(again, Welcome::Go { refused: false, .. }));
        let other = come(&mut few, hello("n1", "b", Some(3))).0;
        assert!(matches!(other, Welcome::Go { refused: true, .. }));
        assert!(!few.is_complete());
        let old = Hello {
            version: "0.0.1".into(),
            ..hello("n2", "b", Some(3))
        };
        assert!(matches!(
            come(&mut few, old).0,
            Welcome::Go { refused: true, .. }
        ));
        assert_eq!(
            come(&mut few, hello("n2", "b", Some(3))).0,
            Welcome::Stay {}
        );
        assert!(few.is_complete());

        let names = vec!["n1".into(), "n2".into()];
        let mut named = assembly(Expected::Names(names));
        assert!(matches!(
            come(&mut named, hello("n7", "a", None)).0,
            Welcome::Go { refused: true, .. }
        ));
        come(&mut named, hello("n2", "a", None));
        let said = named
            .gather(Duration::ZERO, || None)
            .err()
            .unwrap()
            .to_string();
        assert!(
            said.contains("n1 did not connect back") && said.contains("n7"),
            "{said}"
        );
    }

    #[test]
    fn beyond_so_many_hosts_there_is_a_tree() {
        let mut many = assembly(Expected::Count(200));
        let mut told: Vec<_> = (0..200)
            .map(|n| come(&mut many, hello(&format!("n{n}"), "a", None)))
            .collect();
        assert!(
            told[..DIRECT_MAX]
                .iter()
                .all(|(welcome, _)| *welcome == Welcome::Relay {})
        );
        let under = |(welcome, _): &(Welcome, _)| matches!(welcome, Welcome::Under { .. });
        assert!(told[DIRECT_MAX..].iter().all(under));
        assert!(many.is_complete());
        let most = many.relays.iter().map(|relay| relay.below).max();
        assert_eq!((many.relays.len(), most), (DIRECT_MAX, Some(3)));
        told.clear();
    }

    #[test]
    fn names_are_in_the_order_of_their_numbers() {
        let mut names = ["n10", "n9", "n1a2", "n1a10", "m", "n1"];
        names.sort_by_key(|name| natural(name));
        assert_eq!(names, ["m", "n1", "n1a2", "n1a10", "n9", "n10"]);
    }
}
