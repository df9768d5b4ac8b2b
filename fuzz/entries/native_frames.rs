//! Frames of the native engine, what its ranks say while they meet, letters and packed timelines.

use sonde_message::timeline::Trace;

pub fn run(bytes: &[u8]) {
    sonde_message::fuzz::frames(bytes);
    sonde_message::fuzz::records(bytes);
    sonde_message::fuzz::letter(bytes);
    let text = String::from_utf8_lossy(bytes);
    if let Ok(trace) = Trace::unpacked(&text) {
        let again = trace.packed(usize::MAX);
        assert!(Trace::unpacked(&again).is_ok(), "{again}");
    }
}
