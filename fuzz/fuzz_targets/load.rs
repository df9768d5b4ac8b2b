//! Texts of loads, laws, limits and amounts.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sonde_fleet::Load;
use sonde_link::{Law, Limit};
use sonde_units::{BitRate, Bytes, Ratio, Span};

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Ok(load) = text.parse::<Load>() {
        let shown = load.to_string();
        assert_eq!(shown.parse::<Load>().ok().map(|load| load.to_string()), Some(shown));
    }
    let _ = text.parse::<Law>();
    let _ = text.parse::<Limit>();
    let _ = text.parse::<BitRate>();
    let _ = text.parse::<Bytes>();
    let _ = text.parse::<Ratio>();
    let _ = text.parse::<Span>();
});
