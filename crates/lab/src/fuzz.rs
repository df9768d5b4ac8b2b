//! Doors for the fuzz targets: what comes over the lab's sockets, frames of hosts, and the words of `rsh`.
//!
//! Checked: the fuzz target `lab_control`.

use std::ffi::OsString;

use serde::de::DeserializeOwned;
use sonde_link::{Answer, Edit, FrameId, Kind, Mark, Piece, Port};

use crate::control::{self, HostAnswer, HostRequest, Request};
use crate::exec::{ExecRequest, FromInit, ToProgram, pack, unpack};
use crate::wire::Addresses;
use crate::{account, ids, rsh, wire};

/// A message of the control socket, of a host's or of a program's.
pub fn message(bytes: &[u8]) {
    fn read<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
        serde_json::from_slice(bytes).ok()
    }
    let _ = read::<control::Answer>(bytes);
    let _ = read::<HostRequest>(bytes);
    let _ = read::<HostAnswer>(bytes);
    let _ = read::<ToProgram>(bytes);
    let _ = read::<FromInit>(bytes);
    if let Some(Request::Command(text)) = read(bytes) {
        let _ = text.parse::<sonde_link::Command>();
    }
    if let Some(request) = read::<ExecRequest>(bytes) {
        for word in request.argv {
            let again = pack(&unpack(&word));
            assert_eq!(unpack(&again), unpack(&word));
        }
    }
}

/// A frame that a host of a lab of `hosts` sends.
pub fn frame(bytes: &[u8], hosts: u8) {
    let all = Addresses::any(u16::from(hosts.max(1)));
    let described = wire::describe(bytes, Port(0), FrameId(1), &all);
    for mark in [Mark::Ok, Mark::Ce, Mark::Corrupt] {
        if let Some(marked) = wire::marked(bytes, mark) {
            assert_eq!(marked.len(), bytes.len());
        }
    }
    // The router's interface in the other subnet.
    let by = Port(u16::from(hosts.max(1)) * 2 + 1);
    let answers = [
        Answer::Echo,
        Answer::TimeExceeded,
        Answer::TooLong { mtu: 1_500 },
    ];
    let answers = answers.map(|what| Edit::Answer {
        of: by,
        by,
        hops: 1,
        what,
    });
    let pieces = [None, Some(Piece { offset: 8, len: 1 })];
    let routed = pieces.map(|piece| Edit::Routed { by, hops: 2, piece });
    for edit in answers.into_iter().chain(routed) {
        if let Some(edited) = wire::edited(bytes, edit, Port(0), &all) {
            assert!(edited.len() >= wire::HEADER + 20, "it has its header");
        }
    }
    if let Some(Kind::Resolve(port)) = described.map(|frame| frame.kind) {
        let mut answer = bytes.to_vec();
        wire::answer(&mut answer, port, &all);
        assert!(answer.starts_with(&bytes[6..12]), "it goes to the asker");
    }
}

/// What is typed behind `rsh`, a word a line, and files of users and of ids.
pub fn words(text: &str) {
    let words: Vec<OsString> = text.lines().map(OsString::from).collect();
    let _ = rsh::RemoteCommand::parse(&words, &rsh::Here::of(1, text.to_owned()));
    // A name is a field of a line.
    let line = text.lines().next().unwrap_or_default();
    let name = line.split(':').next().unwrap_or_default();
    if let Some(shadow) = account::unlocked(text, name) {
        assert_eq!(account::unlocked(&shadow, name), None, "once is enough");
    }
    let _ = account::without_passwords(text);
    let _ = ids::parse_given(text, text);
}
