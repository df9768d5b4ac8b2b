//! A script of changes to a network, and single commands.

use sonde_link::{Command, Script};

pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Ok(script) = Script::parse(text) {
        assert!(Script::parse(&script.to_string()).is_ok(), "{script}");
    }
    for line in text.lines() {
        if let Ok(command) = Command::parse(line) {
            let shown = command.to_string();
            assert_eq!(Command::parse(&shown).as_ref(), Ok(&command), "{shown}");
        }
    }
}
