//! ONC RPC: calls and replies around the arguments and results of a program, and how a byte stream carries them.
//!
//! Model:   a call names program, version and procedure under an identifier (xid) that its reply repeats. Over UDP a message is a
//!          datagram; over TCP a record of fragments, each behind its length, of which the top bit marks the last. The caller's
//!          AUTH_SYS credential carries a machine name, which sonde's own clients fill with the token of their run.
//! Source:  RFC 5531 §9, §11 (record marking), RFC 5531 appendix A (AUTH_SYS). Deviations: verifiers of replies are not looked at;
//!          a record is bounded by [`RECORD_BYTES_MAX`].
//! Checked: `calls_and_replies_come_back`, `records_are_joined_from_any_pieces`; the fuzz target `files`.
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

use super::xdr::{Decoder, Encoder, Malformed, Result};

/// The longest record that is taken from a stream: the largest transfer and what stands around it.
pub const RECORD_BYTES_MAX: usize = (1 << 20) + 4_096;
/// The longest machine name of a credential (RFC 5531 appendix A).
pub const MACHINE_BYTES_MAX: u32 = 255;

const RPC_VERSION: u32 = 2;
const CALL: u32 = 0;
const REPLY: u32 = 1;
const AUTH_NONE: u32 = 0;
const AUTH_SYS: u32 = 1;
const CREDENTIAL_BYTES_MAX: u32 = 400;
const LAST_FRAGMENT: u32 = 1 << 31;

/// Which procedure is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Procedure {
    /// The program: 100003 is NFS, 100005 MOUNT.
    pub program: u32,
    /// Its version.
    pub version: u32,
    /// Its procedure.
    pub number: u32,
}

/// What stands before the arguments of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallHeader<'a> {
    /// What its reply repeats.
    pub xid: u32,
    /// What is called.
    pub procedure: Procedure,
    /// The machine name of an AUTH_SYS credential; empty without one.
    pub machine: &'a [u8],
}

/// Why a server did not do what was called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    /// It does not have the program.
    #[error("the server does not have the program")]
    NoProgram,
    /// It has the program in other versions.
    #[error("the server has versions {low} to {high} of the program")]
    NoVersion {
        /// The lowest.
        low: u32,
        /// The highest.
        high: u32,
    },
    /// The program does not have the procedure.
    #[error("the program does not have the procedure")]
    NoProcedure,
    /// It cannot read the arguments.
    #[error("the server cannot read the arguments")]
    Garbage,
    /// It failed.
    #[error("the server failed within itself")]
    System,
    /// It speaks another RPC.
    #[error("the server speaks another version of RPC")]
    NoRpc,
    /// It does not trust the caller.
    #[error("the server refuses the caller's credential (auth_stat {0})")]
    Credential(u32),
}

/// AUTH_TOOWEAK: a credential that is not enough.
pub const TOO_WEAK: u32 = 5;

/// Begins a call: its arguments follow.
pub fn begin_call(xid: u32, procedure: Procedure, machine: &[u8], room: usize) -> Encoder {
    let mut to = Encoder::with_capacity(room.saturating_add(128));
    for word in [
        xid,
        CALL,
        RPC_VERSION,
        procedure.program,
        procedure.version,
        procedure.number,
        AUTH_SYS,
    ] {
        to.u32(word);
    }
    let mut credential = Encoder::with_capacity(machine.len().saturating_add(24));
    // A stamp of no meaning, the name, user and group 0, no further groups.
    credential.u32(xid);
    credential.opaque(machine);
    for word in [0, 0, 0] {
        credential.u32(word);
    }
    to.opaque(&credential.finish());
    to.u32(AUTH_NONE);
    to.u32(0);
    to
}

/// Reads what stands before the arguments of a call; these are left.
///
/// # Errors
/// It is not a call.
pub fn read_call<'a>(from: &mut Decoder<'a>) -> Result<CallHeader<'a>> {
    let xid = from.u32()?;
    expect(from, "a call", CALL)?;
    expect(from, "the version of RPC", RPC_VERSION)?;
    let procedure = Procedure {
        program: from.u32()?,
        version: from.u32()?,
        number: from.u32()?,
    };
    let flavour = from.u32()?;
    let credential = from.opaque(CREDENTIAL_BYTES_MAX)?;
    let machine = if flavour == AUTH_SYS {
        let mut from = Decoder::new(credential);
        from.u32()?;
        from.opaque(MACHINE_BYTES_MAX)?
    } else {
        &[]
    };
    from.u32()?;
    from.opaque(CREDENTIAL_BYTES_MAX)?;
    Ok(CallHeader {
        xid,
        procedure,
        machine,
    })
}

fn expect(from: &mut Decoder<'_>, what: &'static str, wanted: u32) -> Result<()> {
    match from.u32()? {
        value if value == wanted => Ok(()),
        value => Err(Malformed::Value { what, value }),
    }
}

/// Begins the reply to a call that was done: its results follow.
pub fn begin_reply(xid: u32, room: usize) -> Encoder {
    let mut to = Encoder::with_capacity(room.saturating_add(128));
    // Accepted, with no verifier, and successful.
    for word in [xid, REPLY, 0, AUTH_NONE, 0, 0] {
        to.u32(word);
    }
    to
}

/// The reply to a call that was not done.
pub fn rejection(xid: u32, why: Rejected) -> Vec<u8> {
    let mut to = Encoder::with_capacity(32);
    to.u32(xid);
    to.u32(REPLY);
    let words: &[u32] = match why {
        Rejected::NoProgram => &[0, AUTH_NONE, 0, 1],
        Rejected::NoVersion { low, high } => &[0, AUTH_NONE, 0, 2, low, high],
        Rejected::NoProcedure => &[0, AUTH_NONE, 0, 3],
        Rejected::Garbage => &[0, AUTH_NONE, 0, 4],
        Rejected::System => &[0, AUTH_NONE, 0, 5],
        Rejected::NoRpc => &[1, 0, RPC_VERSION, RPC_VERSION],
        Rejected::Credential(why) => &[1, 1, why],
    };
    words.iter().for_each(|word| to.u32(*word));
    to.finish()
}

/// Reads what stands before the results of a reply, which are left: the identifier of its call, and why it was not done.
///
/// # Errors
/// It is not a reply.
pub fn read_reply(from: &mut Decoder<'_>) -> Result<(u32, std::result::Result<(), Rejected>)> {
    let xid = from.u32()?;
    expect(from, "a reply", REPLY)?;
    if from.u32()? != 0 {
        let why = match from.u32()? {
            0 => Rejected::NoRpc,
            _ => Rejected::Credential(from.u32()?),
        };
        return Ok((xid, Err(why)));
    }
    from.u32()?;
    from.opaque(CREDENTIAL_BYTES_MAX)?;
    let why = match from.u32()? {
        0 => return Ok((xid, Ok(()))),
        1 => Rejected::NoProgram,
        2 => Rejected::NoVersion {
            low: from.u32()?,
            high: from.u32()?,
        },
        3 => Rejected::NoProcedure,
        4 => Rejected::Garbage,
        _ => Rejected::System,
    };
    Ok((xid, Err(why)))
}

/// What stands before a record of one fragment in a stream; none for what is too long.
pub fn mark(record: &[u8]) -> Option<[u8; 4]> {
    let length = u32::try_from(record.len()).ok()?;
    (record.len() <= RECORD_BYTES_MAX).then(|| (LAST_FRAGMENT | length).to_be_bytes())
}

/// Joins the records of a stream from whatever pieces it comes in: a record of one fragment, which is what everybody sends, stays where it was read.
#[derive(Debug, Default)]
pub struct Records {
    /// Bytes of the stream between `begin` and `end`; behind them is room.
    memory: Vec<u8>,
    begin: usize,
    end: usize,
    /// The fragments so far of a record of several.
    record: Vec<u8>,
    /// That record was whole, and taken.
    is_taken: bool,
}

impl Records {
    /// Room for at least so many bytes of the stream, of which [`took`](Self::took) says how many came.
    pub fn room(&mut self, bytes: usize) -> &mut [u8] {
        if self.begin == self.end {
            (self.begin, self.end) = (0, 0);
        }
        if self.memory.len().saturating_sub(self.end) < bytes && self.begin > 0 {
            self.memory.copy_within(self.begin..self.end, 0);
            (self.begin, self.end) = (0, self.end.saturating_sub(self.begin));
        }
        if self.memory.len().saturating_sub(self.end) < bytes {
            self.memory.resize(self.end.saturating_add(bytes), 0);
        }
        self.memory.get_mut(self.end..).unwrap_or_default()
    }

    /// So many bytes came into the room.
    pub fn took(&mut self, bytes: usize) {
        self.end = self.end.saturating_add(bytes).min(self.memory.len());
    }

    /// Takes bytes of the stream in.
    pub fn push(&mut self, bytes: &[u8]) {
        if let Some(room) = self.room(bytes.len()).get_mut(..bytes.len()) {
            room.copy_from_slice(bytes);
        }
        self.took(bytes.len());
    }

    /// The next record that is whole.
    ///
    /// # Errors
    /// It is longer than [`RECORD_BYTES_MAX`]: the stream is of no use any more.
    pub fn poll_record(&mut self) -> Result<Option<&[u8]>> {
        if std::mem::take(&mut self.is_taken) {
            self.record.clear();
        }
        loop {
            let left = self.memory.get(self.begin..self.end).unwrap_or_default();
            let mut from = Decoder::new(left);
            let Ok(head) = from.u32() else {
                return Ok(None);
            };
            let length = head & !LAST_FRAGMENT;
            let all = self.record.len().saturating_add(length as usize);
            if all > RECORD_BYTES_MAX {
                return Err(Malformed::TooLong {
                    length,
                    max: RECORD_BYTES_MAX as u32,
                });
            }
            let Some(fragment) = from.rest().get(..length as usize) else {
                return Ok(None);
            };
            self.begin = self.begin.saturating_add(4).saturating_add(fragment.len());
            let is_last = head & LAST_FRAGMENT != 0;
            if is_last && self.record.is_empty() {
                return Ok(Some(fragment));
            }
            self.record.extend_from_slice(fragment);
            if is_last {
                self.is_taken = true;
                return Ok(Some(&self.record));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const READ: Procedure = Procedure {
        program: 100_003,
        version: 2,
        number: 6,
    };

    #[test]
    fn calls_and_replies_come_back() {
        let mut call = begin_call(7, READ, b"token", 0);
        call.u32(42);
        let call = call.finish();
        let mut from = Decoder::new(&call);
        let header = read_call(&mut from).unwrap();
        assert_eq!((header.xid, header.procedure), (7, READ));
        assert_eq!(header.machine, b"token");
        assert_eq!(from.u32(), Ok(42));
        // 40 bytes of words, 24 of the credential with a name of 5 bytes padded to 8.
        assert_eq!(call.len(), 24 + 8 + (20 + 8) + 8 + 4);
        let mut reply = begin_reply(7, 0);
        reply.u32(1);
        let reply = reply.finish();
        let mut from = Decoder::new(&reply);
        assert_eq!(read_reply(&mut from), Ok((7, Ok(()))));
        assert_eq!((from.u32(), reply.len()), (Ok(1), 24 + 4));
        for why in [
            Rejected::NoProgram,
            Rejected::NoVersion { low: 2, high: 3 },
            Rejected::NoProcedure,
            Rejected::Garbage,
            Rejected::System,
            Rejected::NoRpc,
            Rejected::Credential(TOO_WEAK),
        ] {
            let reply = rejection(9, why);
            assert_eq!(read_reply(&mut Decoder::new(&reply)), Ok((9, Err(why))));
        }
        // A reply is not taken for a call, nor a call for a reply.
        assert!(read_call(&mut Decoder::new(&reply)).is_err());
        assert!(read_reply(&mut Decoder::new(&call)).is_err());
    }

    #[test]
    fn a_record_that_is_too_long_is_refused_before_it_is_kept() {
        let mut records = Records::default();
        records.push(&(LAST_FRAGMENT | (2 << 20)).to_be_bytes());
        assert!(records.poll_record().is_err());
        // So is one of many fragments.
        let mut records = Records::default();
        let mut fragment = (1_u32 << 19).to_be_bytes().to_vec();
        fragment.extend(vec![0; 1 << 19]);
        records.push(&fragment);
        records.push(&fragment);
        assert_eq!(records.poll_record(), Ok(None));
        records.push(&fragment);
        assert!(records.poll_record().is_err());
    }

    proptest! {
        #[test]
        fn records_are_joined_from_any_pieces(
            all in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..6),
            cut in 1_usize..9,
            piece in 1_usize..11,
        ) {
            let mut stream = Vec::new();
            for record in &all {
                let mut parts = record.chunks(cut).peekable();
                if parts.peek().is_none() {
                    stream.extend(mark(record).unwrap());
                }
                while let Some(part) = parts.next() {
                    let last = if parts.peek().is_none() { LAST_FRAGMENT } else { 0 };
                    stream.extend((last | part.len() as u32).to_be_bytes());
                    stream.extend(part);
                }
            }
            let mut records = Records::default();
            let mut found = Vec::new();
            for bytes in stream.chunks(piece) {
                records.push(bytes);
                while let Some(record) = records.poll_record().unwrap() {
                    found.push(record.to_vec());
                }
            }
            prop_assert_eq!(found, all);
        }
    }
}
