//! What strangers send to a data port, by TCP after the length and by UDP.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sonde_channel::payload::{self, StreamCheck};

fuzz_target!(|bytes: &[u8]| {
    let admitted = sonde_probe::admits("0123456789abcdef0123456789abcdef", bytes);
    assert!(!admitted, "a token was guessed");
    if let [size, rest @ ..] = bytes {
        let _ = payload::check(rest, 1);
        let _ = payload::verify(rest, 1);
        let mut stream = StreamCheck::new(usize::from(*size) + 1, true);
        let _ = stream.on_bytes(rest);
    }
});
