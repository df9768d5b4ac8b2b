//! What is set of FTP beside what all services have: buffers, translation, and the client's disk.
//!
//! Model:   a file goes from a disk into the copy buffer, by a translation of text into a socket, over the network, and the same back.
//!          Each of these stages has its knob. The disk of the server is that of all services (`disk`); the client has one of its own.
//! Source:  RFC 959 §3.1 (types); requirements H35 to H41 for the stages.
//! Units:   bytes; names end in their unit.
//! Checked: `settings_of_ftp_are_read_by_name`, `what_another_service_has_is_refused` of `files`.

use serde::{Deserialize, Serialize};

use super::{Disk, bytes};

/// The largest copy buffer.
pub const COPY_BYTES_MAX: u64 = 1 << 20;

/// How a file is represented on the way (RFC 959 §3.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Representation {
    /// TYPE I: byte for byte.
    Binary,
    /// TYPE A: each line ends with CR LF.
    Ascii,
}

/// How lines are translated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Translation {
    /// Each character by itself, as by the macros GETC and PUTC.
    Character,
    /// Ends of lines are searched for, and what is between them is copied in one piece.
    Block,
}

/// What is set of FTP alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ftp {
    /// `window`: the largest window of the receiving end of a data connection; null is the host's.
    pub window_bytes: Option<u64>,
    /// `sndbuf`: the send buffer of data connections; null is the host's.
    pub send_buffer_bytes: Option<u64>,
    /// `copy`: what is read from a disk and handed to the socket in one piece, and the reverse.
    pub copy_bytes: u64,
    /// `read-ahead`: what the source's disk reads while the socket sends; 0: disk and socket take turns.
    pub read_ahead_bytes: u64,
    /// `type`: how a file is represented.
    pub representation: Representation,
    /// `translate`: how text is translated.
    pub translation: Translation,
    /// `client-disk`, `client-seek`, `client-cache`: a disk that the client waits for.
    pub client_disk: Option<Disk>,
}

/// The name of the client's disk.
pub(super) const CLIENT_DISK: &str = "client-disk";

impl Ftp {
    /// The names of what can be set, with what they take.
    pub(super) const NAMES: [(&'static str, &'static str); 9] = [
        ("window", "largest window of TCP's receiver, as 64KiB"),
        ("sndbuf", "send buffer of data connections, as 64KiB"),
        (
            "copy",
            "bytes that go between disk and socket in one piece, as 64KiB",
        ),
        (
            "read-ahead",
            "bytes that the source's disk reads ahead, as 256KiB; 0: disk and socket take turns",
        ),
        ("type", "how files are represented: binary or ascii"),
        ("translate", "text is translated by: character or block"),
        (
            CLIENT_DISK,
            "rate of a modelled disk of the client, as 16Mbit",
        ),
        ("client-seek", "what a move of its arm takes, as 10ms"),
        ("client-cache", "the client's memory for it, as 4MiB"),
    ];

    /// Binary files by 64 KiB, without read-ahead, and no disk.
    pub const USUAL: Self = Self {
        window_bytes: None,
        send_buffer_bytes: None,
        copy_bytes: 65_536,
        read_ahead_bytes: 0,
        representation: Representation::Binary,
        translation: Translation::Block,
        client_disk: None,
    };

    /// Sets what is no part of a disk.
    pub(super) fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "window" => self.window_bytes = Some(bytes(value, 2_048, 1 << 29)?),
            "sndbuf" => self.send_buffer_bytes = Some(bytes(value, 2_048, 1 << 30)?),
            "copy" => self.copy_bytes = bytes(value, 512, COPY_BYTES_MAX)?,
            "read-ahead" => self.read_ahead_bytes = bytes(value, 0, 1 << 30)?,
            "type" => {
                self.representation = match value {
                    "binary" => Representation::Binary,
                    "ascii" => Representation::Ascii,
                    _ => return Err("write binary or ascii".into()),
                };
            }
            _ => {
                self.translation = match value {
                    "character" => Translation::Character,
                    "block" => Translation::Block,
                    _ => return Err("write character or block".into()),
                };
            }
        }
        Ok(())
    }
}
