//! A plan of the user's: what is taken can be laid out as text and read back.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[expect(dead_code, reason = "the command uses the rest")]
#[path = "../../crates/sonde/src/exit.rs"]
mod exit;
#[expect(dead_code, reason = "the command uses the rest")]
#[path = "../../crates/sonde/src/failure.rs"]
mod failure;
#[expect(dead_code, unused_imports, reason = "the command uses the rest")]
#[path = "../../crates/sonde/src/flows/mod.rs"]
mod flows;
#[expect(dead_code, reason = "the command uses the rest")]
#[path = "../../crates/sonde/src/kernel.rs"]
mod kernel;
#[expect(dead_code, reason = "the command uses the rest")]
#[path = "../../crates/sonde/src/library.rs"]
mod library;
#[path = "../../crates/sonde/src/messages.rs"]
mod messages;
#[expect(dead_code, unused_imports, reason = "the command uses the rest")]
#[path = "../../crates/sonde/src/plan/mod.rs"]
mod plan;
#[path = "../../crates/sonde/src/any_path.rs"]
mod any_path;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Ok(plan) = plan::Plan::parse(text) {
        let again = plan.text().unwrap();
        assert_eq!(plan::Plan::parse(&again).unwrap(), plan, "{again}");
    }
});
