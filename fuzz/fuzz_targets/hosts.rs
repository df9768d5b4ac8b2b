//! Lists of hosts, as words and as files.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sonde_fleet::{HOSTS_MAX, targets};

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let file = |_: &std::path::Path| Ok::<_, String>(text.to_owned());
    for found in [targets(text, file), targets("./hosts", file)] {
        if let Ok(found) = found {
            assert!(found.len() <= HOSTS_MAX, "{} hosts", found.len());
        }
    }
});
