//! Short words of the command line and of plans: knobs, paths, methods, paces, profiles.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sonde_lab::Profile;
use sonde_measure::{KnobValues, Knobs, Method, Pace, Path};

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let _ = text.parse::<Path>();
    let _ = text.parse::<Method>();
    let _ = text.parse::<Profile>();
    let mut values: KnobValues = text
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    let _ = Pace::take(&mut values, 1);
    let _ = Knobs::parse(&values);
});
