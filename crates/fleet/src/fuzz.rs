//! Doors for the fuzz targets: what agents and relays say, and what ssh, srun, PVM and the launchers of MPI print.
//!
//! Checked: the fuzz targets `connect_frames` and `launchers`.

use sonde_probe::frame;
use sonde_probe::library::Report;

use crate::connect::{handshake, trunk};
use crate::ranks::output;
use crate::ssh::greeting::{Greeter, Heard};
use crate::virtual_machine::console;
use crate::{Allocation, Mpi, Token};

/// What peers say once they have shown the token.
pub fn connect(bytes: &[u8]) {
    let mut from = bytes;
    while let Ok(Some(body)) = frame::read(&mut from) {
        words(&body);
    }
    words(bytes);
    let mut from = bytes;
    while let Ok(Some((ticket, piece))) = trunk::read_piece(&mut from) {
        let mut again = Vec::new();
        trunk::write_piece(&mut again, ticket, &piece).expect("memory takes all");
        let read = trunk::read_piece(&mut &again[..]).ok().flatten();
        assert_eq!(read, Some((ticket, piece)));
    }
}

fn words(body: &[u8]) {
    let _ = frame::parse::<handshake::Hello>(body);
    let _ = frame::parse::<handshake::Welcome>(body);
    let _ = frame::parse::<handshake::RelayPort>(body);
    let text = String::from_utf8_lossy(body);
    if let Ok(token) = Token::parse(&text) {
        assert_eq!(token.text(), text.trim().to_lowercase());
    }
}

/// What programs print that start agents or ranks.
pub fn printed(bytes: &[u8]) {
    let mut greeter = Greeter::default();
    for byte in bytes {
        if greeter.on_byte(*byte) != Heard::Nothing {
            break;
        }
    }
    let text = String::from_utf8_lossy(bytes);
    let names = console::configuration(&text);
    assert!(names.iter().all(|name| text.contains(name)));
    let _ = console::one_line(&text);
    let _ = output::words(&output::cause_of_mpich(&text));
    let _ = output::stray(&text);
    let _ = Report::find(&text);
    let _ = Mpi::of(&text);
    // An allocation is told in variables, one a line.
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    let variables = pairs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let _ = Allocation::of(&variables);
}
