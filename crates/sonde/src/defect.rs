//! A defect of sonde: what a panic of any thread means, and how the command ends.
//!
//! Model:   the hook runs in the thread that panics, tells, and ends the process at once. Nothing is lost by that: a launch is in the
//!          store before the next one begins, and labs, agents and changed settings end with this process, as after `kill -9`.
//! Checked: `a_panic_is_told_as_a_defect`.

use crate::exit::{self, Ending};
use crate::measure::command_line;
use sonde_sys::tell;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::PanicHookInfo;
use std::sync::{Mutex, PoisonError};

/// What is done just now, where it is more than the command line says.
static DOING: Mutex<String> = Mutex::new(String::new());

/// Notes what is done from now on, as in "measuring tcp from h1 to h2".
pub fn doing(what: String) {
    *DOING.lock().unwrap_or_else(PoisonError::into_inner) = what;
}

/// From now on a panic ends the process as is told here.
pub fn watch() {
    std::panic::set_hook(Box::new(|panic| {
        tell_defect(panic);
        std::process::exit(exit::code(&Ending::Defect));
    }));
}

fn tell_defect(panic: &PanicHookInfo<'_>) {
    let payload = panic.payload();
    let what = payload.downcast_ref::<&str>().copied();
    let what = what.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let what = what.unwrap_or("a panic without a message");
    let place = panic.location().map(ToString::to_string);
    // This thread may hold it.
    let doing = DOING.try_lock().map(|doing| doing.clone());
    let doing = doing.ok().filter(|doing| !doing.is_empty());
    let doing = doing.map_or_else(String::new, |doing| format!(", {doing}"));
    tell!(
        "sonde: this is a bug in sonde: {what} (at {}, version {})",
        place.unwrap_or_default(),
        env!("CARGO_PKG_VERSION")
    );
    tell!("sonde: it happened in `sonde {}`{doing}", command_line());
    tell!(
        "sonde: all results until then are stored, and `sonde report` shows them; please report these lines and the output of `sonde \
         doctor`"
    );
    let trace = Backtrace::capture();
    if trace.status() == BacktraceStatus::Captured {
        tell!("{trace}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Not a test: what [`a_panic_is_told_as_a_defect`] runs in a process of its own, which it ends.
    #[test]
    #[ignore = "ends its process"]
    fn broken() {
        watch();
        doing("measuring tcp from h1 to h2\u{1b}[2J".into());
        let broken = std::thread::spawn(|| panic!("assertion failed: {}", 1 + 1));
        drop(broken.join());
    }

    #[test]
    fn a_panic_is_told_as_a_defect() {
        let mut call = Command::new(std::env::current_exe().unwrap());
        call.args([
            "--exact",
            "defect::tests::broken",
            "--ignored",
            "--nocapture",
        ]);
        let output = call.env_remove("RUST_BACKTRACE").output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(70), "{told}");
        for words in [
            "sonde: this is a bug in sonde: assertion failed: 2 (at crates/sonde/src/defect.rs:",
            ", measuring tcp from h1 to h2\\u{1b}[2J",
            "all results until then are stored",
            "please report these lines",
        ] {
            assert!(told.contains(words), "{words}: {told}");
        }
        assert_eq!(told.lines().count(), 3, "{told}");
    }
}
