//! What a measurement shows while it runs: on a terminal the bar with what is measured, the time left, medians and trust; on a pipe
//! nothing of it.
//!
//! Model:   the terminal is a pseudo-terminal of which the test reads the other end; it is as wide as its lines need.

use crate::lab::{Call, Case, Stage, attachments};
use sonde_sys::pty::{Pty, WindowSize, set_window_size};
use std::fs::File;
use std::io::Read;

fn measured(stage: &Stage) -> Call {
    let out = stage.path("runs");
    let mut words = vec!["assess", "--hosts", "2", "--quick", "--path", "tcp"];
    words.extend(["--network", "ethernet-100:rate=20Mbit", "--out", &out]);
    stage.sonde(&words).limit(120)
}

/// What a terminal gets of it, with these variables.
fn on_a_terminal(stage: &Stage, variables: &[(&str, &str)]) -> String {
    let pty = Pty::open().unwrap();
    let size = WindowSize {
        rows: 40,
        columns: 200,
    };
    set_window_size(&pty.terminal, size).unwrap();
    let mut call = measured(stage).env("TERM", "xterm-256color");
    call.command.env_remove("NO_COLOR");
    for (name, value) in variables {
        call = call.env(name, value);
    }
    let stream = || pty.terminal.try_clone().unwrap();
    call.command
        .stdin(stream())
        .stdout(stream())
        .stderr(stream());
    let mut child = call.command.spawn().unwrap();
    // The command holds two more copies.
    drop(call);
    drop(pty.terminal);
    let mut controller = File::from(pty.controller);
    let (mut all, mut piece) = (Vec::new(), [0; 4_096]);
    // The last copy of the terminal is gone: EIO, not an end (tty_ioctl(4)).
    while let Ok(count @ 1..) = controller.read(&mut piece) {
        all.extend_from_slice(&piece[..count]);
    }
    let status = child.wait().unwrap();
    let text = String::from_utf8_lossy(&all).into_owned();
    assert!(status.success(), "{status}: {}", end(&text));
    text
}

/// What appeared last: all of it is hundreds of frames.
fn end(text: &str) -> String {
    let letters = text.chars().count();
    text.chars().skip(letters.saturating_sub(4_000)).collect()
}

#[test]
fn a_terminal_sees_medians_and_trust_and_a_pipe_does_not() {
    let Some(case) = attachments().first().copied() else {
        return;
    };
    let stage = Stage::new(Case::own(case.attachment));
    let coloured = on_a_terminal(&stage, &[]);
    for part in [
        " % ",
        "0:0",
        " left; ethernet-100:rate=20Mbit tcp latency h1 to h2",
        "trust ",
    ] {
        assert!(coloured.contains(part), "{part}: {}", end(&coloured));
    }
    let figures = [
        "; ethernet-100:rate=20Mbit: ",
        "tcp latency of ",
        "tcp stream ",
    ];
    for part in figures {
        assert!(coloured.contains(part), "{part}: {}", end(&coloured));
    }
    let colours = ["\u{1b}[32mtrust", "\u{1b}[33mtrust", "\u{1b}[31mtrust"];
    assert!(
        colours.iter().any(|colour| coloured.contains(colour)),
        "{:?}",
        end(&coloured)
    );
    let plain = on_a_terminal(&stage, &[("NO_COLOR", "1")]);
    assert!(plain.contains("trust "), "{}", end(&plain));
    assert!(
        !colours.iter().any(|colour| plain.contains(colour)),
        "{:?}",
        end(&plain)
    );
    let piped = measured(&stage).expect(0);
    for part in ["left;", "trust high", "\u{1b}"] {
        assert!(!piped.err.contains(part), "{piped}");
        assert!(!piped.out.contains(part), "{piped}");
    }
}
