//! What strangers send to a data port, over TCP after the length and over UDP.

use sonde_channel::payload::{self, StreamCheck};

pub fn run(bytes: &[u8]) {
    let admitted = sonde_probe::admits("0123456789abcdef0123456789abcdef", bytes);
    assert!(!admitted, "a token was guessed");
    if let [size, rest @ ..] = bytes {
        let _ = payload::check(rest, 1);
        let _ = payload::verify(rest, 1);
        let _ = payload::check_answer(rest, &payload::message(rest.len()));
        let mut stream = StreamCheck::new(usize::from(*size) + 1, true);
        let _ = stream.on_bytes(rest);
    }
}
