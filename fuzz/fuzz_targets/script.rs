//! A script of changes to a network, and single commands.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sonde_link::Script;
use sonde_link::Command;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let _ = Script::parse(text);
    for line in text.lines() {
        if let Ok(command) = Command::parse(line) {
            let shown = command.to_string();
            assert_eq!(Command::parse(&shown).as_ref(), Ok(&command), "{shown}");
        }
    }
});
