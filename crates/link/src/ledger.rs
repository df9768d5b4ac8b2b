//! The ledger: what entered a network and what came out of it, in records that are cheap to write.
//!
//! Model:   a header (magic, version, hosts, seed, and the site as TOML, in version 2 the network), then one record of 48 bytes for each entry,
//!          in the order in which they happened to who drove the network. Times of offers, commands and the end are the
//!          `now` that the network was given; times of deliveries and losses are the model's. No time is before that of
//!          an earlier event, none of an input before anything earlier: a network that gets the same inputs at the same
//!          times tells the same events. Writing needs no allocation; a file cut short is read up to its last whole record.
//! Units:   picoseconds in records, little endian; [`Entry::Deliver::actual`] in the same time as `at`.
//! Checked: property `any_bytes_are_read_or_refused`, `a_bad_record_is_named`, `the_header_round_trips`.
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

use crate::{Admission, Cause, Command, Edit, Event, Frame, FrameId, Mark, Place, Port, SiteSpec};
use sonde_units::Instant;
use std::io::{self, Read, Write};
use thiserror::Error;

mod command;
mod record;

#[cfg(test)]
pub(crate) use command::tests::commands;
pub use record::RECORD;

const MAGIC: [u8; 8] = *b"SONDELGR";
const VERSION: u16 = 3;
/// The last version whose header has a network.
const OF_A_NETWORK: u16 = 2;
const HEAD: usize = 24;
/// No site's TOML is longer.
const SITE_MAX: u32 = 1 << 20;
/// A mesh of circuits grows with the square of the ports.
const HOSTS_MAX: u16 = 1_024;

/// What a ledger is about: enough to build the network again.
#[derive(Clone, Debug)]
pub struct Header {
    /// What joins the hosts, of which there are at most 1024; the knobs of its networks are applied.
    pub site: SiteSpec,
    /// The seed of its draws.
    pub seed: u64,
}

/// Something that entered a network, or that it told.
#[derive(Clone, Copy, Debug)]
pub enum Entry {
    /// A frame was offered.
    Offer {
        /// The `now` of the offer.
        at: Instant,
        /// The frame.
        frame: Frame,
        /// What the network said.
        admission: Admission,
    },
    /// A command was given, and not refused.
    Command {
        /// The `now` of the command.
        at: Instant,
        /// Which of the hosts' interfaces it is for, as in [`Network::command_on`](crate::Network::command_on).
        number: u16,
        /// The command.
        command: Command,
    },
    /// A copy arrived.
    Deliver {
        /// When, in the model.
        at: Instant,
        /// Which frame.
        id: FrameId,
        /// At which station.
        to: Port,
        /// Its state.
        mark: Mark,
        /// What routers made of it.
        edit: Edit,
        /// When its bytes were really written to the port, under a real clock.
        actual: Option<Instant>,
    },
    /// A copy was lost.
    Lost {
        /// When, in the model.
        at: Instant,
        /// Which frame.
        id: FrameId,
        /// For which station.
        to: Port,
        /// Where.
        place: Place,
        /// Why.
        cause: Cause,
    },
    /// The network was polled until nothing was left at this time: the ledger is whole.
    End {
        /// The last `now`.
        at: Instant,
    },
}

/// Why a ledger could not be read. Records are counted from 1.
#[derive(Debug, Error)]
pub enum LedgerError {
    /// The reader failed.
    #[error("cannot read the ledger: {0}")]
    Read(#[from] io::Error),
    /// It is something else.
    #[error(
        "this is not a ledger: it begins with other bytes than `SONDELGR`; give the file that `sonde lab` wrote"
    )]
    NotALedger,
    /// A later sonde wrote it.
    #[error(
        "the ledger has version {0}, and this sonde reads {OF_A_NETWORK} and {VERSION}; use the sonde that wrote it"
    )]
    Version(u16),
    /// Its network cannot be had.
    #[error("the ledger's network is wrong: {0}; the file is damaged, record it again")]
    Network(String),
    /// It has more hosts than a network here can have.
    #[error(
        "the ledger has {0} hosts, but a network has at most {HOSTS_MAX}; the file is damaged, record it again"
    )]
    Hosts(u16),
    /// It ends within a record.
    #[error(
        "the ledger ends within record {record}, after {bytes} of its 48 bytes; cut those off to use the records before"
    )]
    Truncated {
        /// Which.
        record: u64,
        /// How many bytes of it are there.
        bytes: usize,
    },
    /// A record says nothing that can be.
    #[error(
        "record {record} (byte {offset} of the file) {problem}; cut the file off there to use the records before, or record it again"
    )]
    Record {
        /// Which.
        record: u64,
        /// Where it begins.
        offset: u64,
        /// What is wrong.
        problem: &'static str,
    },
}

impl Entry {
    /// What is recorded of an event; nothing of those that follow from the others.
    pub fn of_event(event: &Event, actual: Option<Instant>) -> Option<Self> {
        match *event {
            Event::Deliver {
                at,
                id,
                to,
                mark,
                edit,
            } => Some(Self::Deliver {
                at,
                id,
                to,
                mark,
                edit,
                actual,
            }),
            Event::Lost {
                at,
                id,
                to,
                place,
                cause,
            } => Some(Self::Lost {
                at,
                id,
                to,
                place,
                cause,
            }),
            Event::Done { .. } | Event::Ready { .. } | Event::Busy { .. } | Event::State { .. } => {
                None
            }
        }
    }

    /// Its time.
    pub fn at(&self) -> Instant {
        match *self {
            Self::Offer { at, .. }
            | Self::Command { at, .. }
            | Self::Deliver { at, .. }
            | Self::Lost { at, .. }
            | Self::End { at } => at,
        }
    }

    fn is_input(&self) -> bool {
        !matches!(self, Self::Deliver { .. } | Self::Lost { .. })
    }

    /// Whether its ports are on a network of so many hosts and ports of theirs. A frame's destination may be anything.
    fn fits(&self, hosts: u16, ports: u16) -> bool {
        match *self {
            Self::Offer { frame, .. } => frame.from.0 < ports,
            Self::Command { command, .. } => command.check(hosts).is_ok(),
            Self::Deliver { to, .. } | Self::Lost { to, .. } => to.0 < ports,
            Self::End { .. } => true,
        }
    }
}

/// Writes a ledger. Give it a buffered `out`: a record is one write of 48 bytes.
pub struct Writer<W> {
    out: W,
}

impl<W: Write> Writer<W> {
    /// Writes the header.
    ///
    /// # Errors
    /// Those of `out`; [`io::ErrorKind::InvalidInput`] where the site cannot be written as TOML, or has more than 1024
    /// hosts.
    pub fn new(mut out: W, header: &Header) -> io::Result<Self> {
        let invalid = |problem: String| io::Error::new(io::ErrorKind::InvalidInput, problem);
        let hosts = header.site.count();
        if hosts > HOSTS_MAX {
            return Err(invalid(LedgerError::Hosts(hosts).to_string()));
        }
        let site = toml::to_string(&header.site)
            .map_err(|e| invalid(format!("the network cannot be written: {e}")))?;
        let length = u32::try_from(site.len())
            .ok()
            .filter(|length| *length <= SITE_MAX)
            .ok_or_else(|| invalid("the network's description is longer than 1 MiB".into()))?;
        out.write_all(&MAGIC)?;
        out.write_all(&VERSION.to_le_bytes())?;
        out.write_all(&hosts.to_le_bytes())?;
        out.write_all(&length.to_le_bytes())?;
        out.write_all(&header.seed.to_le_bytes())?;
        out.write_all(site.as_bytes())?;
        Ok(Self { out })
    }

    /// Writes an entry.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn append(&mut self, entry: &Entry) -> io::Result<()> {
        self.out.write_all(&entry.encode())
    }

    /// Ends the ledger and gives `out` back, flushed.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn end(mut self, at: Instant) -> io::Result<W> {
        self.append(&Entry::End { at })?;
        self.out.flush()?;
        Ok(self.out)
    }
}

/// Reads a ledger entry by entry; stops after the first error.
pub struct Reader<R> {
    input: R,
    header: Header,
    hosts: u16,
    /// How many interfaces they have.
    ports: u16,
    offset: u64,
    record: u64,
    /// The latest time of an event, and of anything.
    event_at: Instant,
    any_at: Instant,
    ended: bool,
    failed: bool,
}

impl<R: Read> Reader<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// [`LedgerError`], with what is wrong.
    pub fn new(mut input: R) -> Result<Self, LedgerError> {
        let mut head = Vec::new();
        input.by_ref().take(HEAD as u64).read_to_end(&mut head)?;
        let Ok(head) = <[u8; HEAD]>::try_from(head) else {
            return Err(LedgerError::NotALedger);
        };
        if !head.starts_with(&MAGIC) {
            return Err(LedgerError::NotALedger);
        }
        let [_, _, _, _, _, _, _, _, a, b, c, d, e, f, g, h, seed @ ..] = head;
        let version = u16::from_le_bytes([a, b]);
        let hosts = u16::from_le_bytes([c, d]);
        if ![OF_A_NETWORK, VERSION].contains(&version) {
            return Err(LedgerError::Version(version));
        }
        if hosts > HOSTS_MAX {
            return Err(LedgerError::Hosts(hosts));
        }
        let length = u64::from(u32::from_le_bytes([e, f, g, h]));
        let seed = u64::from_le_bytes(seed);
        if length > u64::from(SITE_MAX) {
            return Err(LedgerError::Network("it is longer than 1 MiB".into()));
        }
        let mut text = String::new();
        let read = input.by_ref().take(length).read_to_string(&mut text);
        match read {
            Ok(n) if n as u64 == length => {}
            Ok(_) => return Err(LedgerError::Network("the file ends within it".into())),
            Err(e) if e.kind() == io::ErrorKind::InvalidData => {
                return Err(LedgerError::Network("it is not UTF-8".into()));
            }
            Err(e) => return Err(e.into()),
        }
        let wrong = |error: &dyn std::fmt::Display| LedgerError::Network(error.to_string());
        let site = match version {
            OF_A_NETWORK => crate::parse("ledger", &text)
                .map(|network| SiteSpec::single(network, hosts))
                .map_err(|e| wrong(&e))?,
            _ => toml::from_str::<SiteSpec>(&text).map_err(|e| wrong(&e))?,
        };
        if site.count() != hosts {
            return Err(LedgerError::Network(format!(
                "it has {} hosts of {hosts}",
                site.count()
            )));
        }
        let ports = u16::try_from(site.ends().len()).unwrap_or(u16::MAX);
        let header = Header { site, seed };
        Ok(Self {
            input,
            header,
            hosts,
            ports,
            offset: length.saturating_add(HEAD as u64),
            record: 0,
            event_at: Instant::START,
            any_at: Instant::START,
            ended: false,
            failed: false,
        })
    }

    /// What the ledger is about.
    pub fn header(&self) -> &Header {
        &self.header
    }

    fn entry(&mut self) -> Result<Option<Entry>, LedgerError> {
        let mut bytes = [0; RECORD];
        let mut filled = 0_usize;
        while let Some(room) = bytes.get_mut(filled..).filter(|room| !room.is_empty()) {
            match self.input.read(room) {
                Ok(0) => break,
                Ok(n) => filled = filled.saturating_add(n),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e.into()),
            }
        }
        if filled == 0 {
            return Ok(None);
        }
        self.record = self.record.saturating_add(1);
        let (record, offset) = (self.record, self.offset);
        if filled < RECORD {
            return Err(LedgerError::Truncated {
                record,
                bytes: filled,
            });
        }
        self.offset = self.offset.saturating_add(RECORD as u64);
        let refuse = |problem| LedgerError::Record {
            record,
            offset,
            problem,
        };
        let entry = Entry::decode(&bytes).map_err(refuse)?;
        self.follow(&entry).map_err(refuse)?;
        Ok(Some(entry))
    }

    /// Whether `entry` can come after those before it.
    fn follow(&mut self, entry: &Entry) -> Result<(), &'static str> {
        if self.ended {
            return Err("comes after the end of the ledger");
        }
        if !entry.fits(self.hosts, self.ports) {
            return Err("names a port that the network does not have");
        }
        let bound = if entry.is_input() {
            self.any_at
        } else {
            self.event_at
        };
        if entry.at() < bound {
            return Err("is earlier than one before it");
        }
        self.any_at = self.any_at.max(entry.at());
        if !entry.is_input() {
            self.event_at = entry.at();
        }
        self.ended = matches!(entry, Entry::End { .. });
        Ok(())
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<Entry, LedgerError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let next = self.entry().transpose();
        self.failed = matches!(next, Some(Err(_)));
        next
    }
}

#[cfg(test)]
mod tests {
    use super::record::tests::entries;
    use super::*;
    use proptest::prelude::*;

    fn header() -> Header {
        Header {
            site: SiteSpec::single(crate::named("atm-oc3c").unwrap(), 4),
            seed: u64::MAX,
        }
    }

    fn written(entries: &[Entry]) -> Vec<u8> {
        let mut writer = Writer::new(Vec::new(), &header()).unwrap();
        for entry in entries {
            writer.append(entry).unwrap();
        }
        writer.out
    }

    fn lost(at: u64, to: u16) -> Entry {
        Entry::Lost {
            at: Instant::from_picos(at),
            id: FrameId(1),
            to: Port(to),
            place: Place::Path,
            cause: Cause::Random,
        }
    }

    fn first_error(bytes: &[u8]) -> String {
        let reader = Reader::new(bytes);
        let error = match reader {
            Err(error) => error,
            Ok(reader) => reader.filter_map(Result::err).next().expect("an error"),
        };
        error.to_string()
    }

    /// Also that every network and site of the catalogue survives its way through TOML.
    #[test]
    fn the_header_round_trips() {
        let networks = crate::catalogue()
            .into_iter()
            .map(|network| SiteSpec::single(network, 4));
        for site in networks.chain(crate::sites()) {
            let header = Header { site, ..header() };
            let bytes = Writer::new(Vec::new(), &header).unwrap().out;
            let read = Reader::new(bytes.as_slice()).unwrap();
            assert_eq!(format!("{:?}", read.header()), format!("{header:?}"));
            assert_eq!(read.count(), 0);
        }
    }

    #[test]
    fn a_ledger_of_a_network_is_read() {
        let network = toml::to_string(&crate::named("atm-oc3c").unwrap()).unwrap();
        let mut bytes = MAGIC.to_vec();
        bytes.extend([2, 0, 4, 0]);
        bytes.extend((network.len() as u32).to_le_bytes());
        bytes.extend(u64::MAX.to_le_bytes());
        bytes.extend(network.as_bytes());
        let read = Reader::new(bytes.as_slice()).unwrap();
        assert_eq!(format!("{:?}", read.header()), format!("{:?}", header()));
    }

    #[test]
    fn a_bad_record_is_named() {
        let good = written(&[lost(5, 0), lost(7, 3)]);
        let start = good.len() - 2 * RECORD;
        assert_eq!(Reader::new(good.as_slice()).unwrap().count(), 2);

        let mut bad = good.clone();
        bad[start + RECORD + 40] = 77;
        let want = format!(
            "record 2 (byte {} of the file) is of an unknown kind",
            start + RECORD
        );
        assert!(first_error(&bad).contains(&want), "{}", first_error(&bad));
        bad = good.clone();
        bad[start + 20] = 1;
        assert!(
            first_error(&bad).contains("record 1 "),
            "{}",
            first_error(&bad)
        );

        let cut = first_error(&good[..good.len() - 1]);
        assert!(cut.contains("within record 2, after 47"), "{cut}");
        let early = first_error(&written(&[lost(5, 0), lost(4, 0)]));
        assert!(
            early.contains("record 2") && early.contains("earlier"),
            "{early}"
        );
        let port = first_error(&written(&[lost(5, 4)]));
        assert!(
            port.contains("a port that the network does not have"),
            "{port}"
        );
        let end = Entry::End { at: Instant::START };
        assert!(first_error(&written(&[end, lost(5, 0)])).contains("after the end"));

        assert!(first_error(b"name = \"x\"").contains("not a ledger"));
        let mut later = good.clone();
        later[8] = 9;
        assert!(first_error(&later).contains("version 9"));
        let mut wide = good.clone();
        wide[11] = 5;
        assert!(first_error(&wide).contains("1284 hosts"));
        let mut damaged = good;
        damaged[HEAD] = b'=';
        assert!(first_error(&damaged).contains("network is wrong"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(
            mut entries in prop::collection::vec(entries(), 0..8),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
            tail in prop::collection::vec(any::<u8>(), 0..100),
            from_scratch in any::<bool>(),
        ) {
            entries.sort_by_key(Entry::at);
            let mut bytes = if from_scratch { Vec::new() } else { written(&entries) };
            bytes.extend(tail);
            for (at, byte) in changes {
                if !bytes.is_empty() {
                    let at = at.index(bytes.len());
                    bytes[at] = byte;
                }
            }
            if let Ok(reader) = Reader::new(bytes.as_slice()) {
                // After an error there is nothing more.
                let results: Vec<_> = reader.collect();
                let errors = results.iter().filter(|result| result.is_err()).count();
                prop_assert!(errors <= 1 && results.iter().take(results.len() - errors).all(Result::is_ok));
            }
        }
    }
}
