//! What a fuzz target tries of files: not for anybody else.

use sonde_units::{Instant, Span};

use super::client::{Calls, Timers};
use super::counts::Counts;
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
            serve(&record);
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
