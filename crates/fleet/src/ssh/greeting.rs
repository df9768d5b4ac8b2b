//! What a host says of itself through ssh, past whatever shell and server say.
//!
//! Model:   bytes come one at a time; a line that begins with the greeting's word ends it, and so does too much that is none.
//! Checked: `a_greeting_is_read` of `call`; the fuzz target `launchers`.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use std::net::IpAddr;

/// Before this word on a line stands whatever shells and servers have to say.
pub(super) const GREETING: &str = "sonde-host/1 ";
/// The most of that.
pub(super) const NOISE_BYTES_MAX: usize = 64 << 10;

/// What a host said of itself before its agent ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Greeting {
    pub(super) has_program: Option<bool>,
    pub(super) system: String,
    pub(super) machine: String,
    /// Its address, as its end of the connection has it.
    pub(super) server: Option<IpAddr>,
}

impl Greeting {
    /// `have|want|nowhere SYSTEM MACHINE CLIENT PORT SERVER PORT`.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [word, system, machine, _, _, server, _] = words[..] else {
            return None;
        };
        let has_program = match word {
            "have" => Some(true),
            "want" => Some(false),
            "nowhere" => None,
            _ => return None,
        };
        Some(Self {
            has_program,
            system: system.into(),
            machine: machine.into(),
            server: server.parse().ok(),
        })
    }
}

/// What has been heard with a byte.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// No greeting yet.
    Nothing,
    /// The host's.
    Greeting(Greeting),
    /// More than may come in front of one.
    Noise,
}

/// Waits for a greeting.
#[derive(Debug, Default)]
pub(crate) struct Greeter {
    line: Vec<u8>,
    heard: usize,
}

impl Greeter {
    /// Takes the next byte.
    pub(crate) fn on_byte(&mut self, byte: u8) -> Heard {
        self.heard = self.heard.saturating_add(1);
        if self.heard > NOISE_BYTES_MAX {
            return Heard::Noise;
        }
        if byte != b'\n' {
            self.line.push(byte);
            return Heard::Nothing;
        }
        let line = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&line);
        let said = text.trim_end().strip_prefix(GREETING);
        said.and_then(Greeting::parse)
            .map_or(Heard::Nothing, Heard::Greeting)
    }
}
