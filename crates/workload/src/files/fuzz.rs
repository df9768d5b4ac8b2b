//! What a fuzz target tries of files: not for anybody else.

use sonde_measure::files::Translation;
use sonde_units::{Instant, Span};

use super::client::{Calls, Timers};
use super::counts::Counts;
use super::ftp::dialogue::{Command, LINE_BYTES_MAX, Lines, Replies, Reply};
use super::ftp::session::{Session as FtpSession, Step};
use super::ftp::translate::{FromNetwork, to_network};
use super::nfs::{self, MountCall, MountReply, Version};
use super::rpc::{self, Records};
use super::server::{Caller, Server, Terms};
use super::session::{self, Job, Session};
use super::store::Memory;
use super::xdr::{Decoder, Encoder};

/// A message, as all that reads messages would have it. What is read as a call is read the same when it is written again.
pub fn message(bytes: &[u8]) {
    let mut records = Records::default();
    for piece in bytes.chunks(7) {
        records.push(piece);
        while let Ok(Some(record)) = records.poll_record() {
            serve(record);
        }
    }
    serve(bytes);
    answer(bytes);
    for version in [Version::V2, Version::V3] {
        for number in 0..23 {
            calls(version, number, bytes);
        }
    }
    let mut from = Decoder::new(bytes);
    let _ = Counts::read(&mut from);
    commands(bytes);
    replies(bytes);
    text(bytes);
}

/// A server of FTP takes it for commands; nothing is done before the password is known, which is none of these.
fn commands(bytes: &[u8]) {
    let (mut lines, peer) = (Lines::default(), std::net::Ipv4Addr::new(10, 9, 0, 2));
    let mut guest = FtpSession::new(peer.into(), vec![0; 2 * LINE_BYTES_MAX]);
    let mut member = FtpSession::new(peer.into(), Vec::new());
    for line in ["USER ftp", "PASS x"] {
        member.on_command(Command::parse(line.as_bytes()));
    }
    for piece in bytes.chunks(7) {
        lines.push(piece);
        while let Ok(Some(line)) = lines.poll_line() {
            let command = Command::parse(&line);
            match guest.on_command(command.clone()) {
                Step::Say(reply) | Step::Close(reply) | Step::TurnAway(reply) => same(&reply),
                step => panic!("{step:?}"),
            }
            if let Step::Enter(path) = member.on_command(command) {
                member.enter(path);
            }
        }
    }
}

/// A client of FTP takes it for replies.
fn replies(bytes: &[u8]) {
    let mut from = Replies::default();
    for piece in bytes.chunks(7) {
        from.push(piece);
        while let Ok(Some(reply)) = from.poll_reply() {
            let _ = reply.address(std::net::Ipv4Addr::LOCALHOST.into());
            same(&reply);
        }
    }
}

/// What is written is read the same, if its lines are not too long.
fn same(reply: &Reply) {
    let fits = |line: &str| line.len() + 4 <= LINE_BYTES_MAX;
    let mut from = Replies::default();
    from.push(&reply.write());
    if reply.text.split('\n').all(fits) {
        assert_eq!(from.poll_reply().as_ref(), Ok(&Some(reply.clone())));
    }
}

/// Both translations give the same, and what was sent comes back.
fn text(bytes: &[u8]) {
    let sent = [Translation::Character, Translation::Block].map(|by| {
        let mut sent = Vec::new();
        to_network(by, bytes, &mut sent);
        let (mut from, mut back) = (FromNetwork::new(by), Vec::new());
        sent.chunks(7).for_each(|piece| from.push(piece, &mut back));
        from.finish(&mut back);
        assert_eq!(back, bytes);
        sent
    });
    assert_eq!(sent[0], sent[1]);
}

fn calls(version: Version, number: u32, bytes: &[u8]) {
    drop(nfs::read_reply(version, number, &mut Decoder::new(bytes)));
    let _ = MountReply::read_mounted(version, &mut Decoder::new(bytes));
    let _ = MountCall::read(number, &mut Decoder::new(bytes));
    let read = nfs::read_call(version, number, &mut Decoder::new(bytes));
    let Ok(Some(call)) = read else {
        return;
    };
    let mut to = Encoder::default();
    call.write(version, &mut to);
    let written = to.finish();
    let again = nfs::read_call(version, number, &mut Decoder::new(&written));
    match call {
        nfs::Call::Unsupported { .. } => {}
        call => assert_eq!(again, Ok(Some(call))),
    }
}

/// A server takes it, and answers at most once.
fn serve(bytes: &[u8]) {
    let mut server = Server::new(Terms::new(0), Memory::new(1 << 20));
    server.on_message(Instant::START, Caller(1), bytes);
    let mut replies = 0;
    while let Some((_, reply)) = server.poll_reply(Instant::START) {
        replies += 1;
        assert!(rpc::read_reply(&mut Decoder::new(&reply)).is_ok());
    }
    assert!(replies <= 1);
}

/// A client takes it for the answer to what it asks.
fn answer(bytes: &[u8]) {
    let terms = session::Terms {
        version: Version::V3,
        transfer: 8_192,
        outstanding: 2,
        stable: nfs::Stable::Unstable,
        keeps_attributes: true,
    };
    let Some(file) = nfs::Handle::new(&[1; 32]) else {
        return;
    };
    for job in [
        Job::Read {
            file,
            size_bytes: 20_000,
            sink: session::Sink::Keep,
        },
        Job::Write {
            file,
            size_bytes: 20_000,
            content: None,
        },
        Job::List { directory: file },
        Job::Mount { path: vec![b'/'] },
    ] {
        let mut session = Session::new(terms, Calls::new(Some(Timers::HARD), Vec::new(), 1));
        session.begin(job);
        let now = Instant::START;
        while session.poll_transmit(now).is_some() {}
        // Whatever its identifier, it is taken for that of each call.
        for xid in 1..4_u32 {
            let mut reply = rpc::begin_reply(xid, 0).finish();
            reply.extend_from_slice(bytes);
            session.on_message(now.saturating_add(Span::micros(1)), &reply);
            while session.poll_transmit(now).is_some() {}
        }
        drop(session.poll_outcome());
    }
}
