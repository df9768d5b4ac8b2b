//! Doors for the fuzz targets: what reads frames of `packet` and `xdp`, and is private.
//!
//! Checked: the fuzz target `packet_frames`.

use crate::packet::head::{Head, MAGIC, VERSION};
use sonde_sys::frames::ETHERNET_BYTES;

use crate::PACKET_HEADER_BYTES;

/// A frame as it comes, and the same behind a valid head, which a fuzzer seldom finds.
pub fn frame(bytes: &[u8]) {
    look(bytes);
    let ethernet = [0; ETHERNET_BYTES];
    let [first, rest @ ..] = bytes else {
        return;
    };
    look(&[&ethernet[..], &MAGIC, &[*first, VERSION], rest].concat());
}

fn look(frame: &[u8]) {
    let Some((head, message)) = Head::read(frame) else {
        return;
    };
    assert!(message.len() <= frame.len());
    let mut again = [0; PACKET_HEADER_BYTES];
    head.write(&mut again);
    let found = &frame[ETHERNET_BYTES..][..PACKET_HEADER_BYTES];
    assert_eq!(again, found, "the head is written as it was read");
}
