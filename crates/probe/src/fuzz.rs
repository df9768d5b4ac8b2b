//! Doors for the fuzz targets: what reads datagrams and hellos of strangers, and is private.
//!
//! Checked: the fuzz target `datagrams`.

use crate::admission::{self, Reply, Say};
use crate::circuit;
use crate::load::{self, Promised};
use crate::pattern::listener::{self, Said};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A datagram at the data port of a conversation, a pattern, a circuit's set-up and a load.
pub fn datagram(bytes: &[u8]) {
    let _ = admission::control::<Say>(bytes);
    let _ = admission::control::<Reply>(bytes);
    let _ = circuit::is_question(bytes);
    if let Said::Hello { .. } = listener::said(bytes, TOKEN.as_bytes()) {
        assert!(bytes.starts_with(TOKEN.as_bytes()), "a stranger was let in");
    }
    // Behind the right token, which a fuzzer finds rarely.
    let _ = listener::said(&[TOKEN.as_bytes(), bytes].concat(), TOKEN.as_bytes());
}

/// The ports by which a data port knows connection `number` of the conversation with this token, for tests of who guesses them.
pub fn ports(token: &str, number: u32) -> Vec<u16> {
    admission::ports(token, number).to_vec()
}

/// Datagrams of a load, each of the ten bytes that follow the token, or fewer; with and without the token.
pub fn load(bytes: &[u8]) {
    let token = load::sink::token_bytes(TOKEN).expect("it is of 32 hexadecimal digits");
    let promised = [Promised {
        number: 0,
        size_bytes: 28,
    }];
    let mut judge = load::sink::Judge::new(token, &promised);
    let mut came = 0_u64;
    for number in bytes.chunks(8) {
        let datagram = [&token[..], &[0; 4], number].concat();
        judge.take(&datagram, datagram.len());
        judge.take(number, number.len());
        came += 2;
    }
    assert_eq!(judge.seen(), came, "each is counted once");
    let text = String::from_utf8_lossy(bytes);
    let _ = load::sink::token_bytes(&text);
}
