//! Messages among ranks: tags, matching, requests, groups and collectives, over the native engine or a library.
//!
//! Model:   a [`Messenger`] is one rank's way to all others. Whatever it is made of, the same holds: messages are matched
//!          by group, sender and tag; between two ranks of a group none overtakes another of the same tag; every wait
//!          ends within the messenger's timeout.
//! Units:   bytes; ranks count from zero.
#![forbid(unsafe_code)]

pub mod adapters;
pub mod aged;
mod best;
mod collective;
pub mod collectives;
pub mod counted;
mod error;
#[doc(hidden)]
pub mod fuzz;
mod letters;
mod messenger;
pub mod native;
pub mod oracle;
mod path;
mod postbox;
mod routed;
pub mod timeline;

pub use best::{Best, Cost, Ways};
pub use collective::{Call, Element, Kind, Operation, Parts};
pub use error::{Error, Result};
pub use letters::{Carrier, Head, Letter, Letters};
pub use messenger::{
    Capabilities, Comm, Completion, Messenger, Op, Request, Source, Status, TAG_MAX, Tag, Tagged,
};
pub use path::{BEST, Library, Path, Unnamed};
pub use routed::{Mode, Routed, Routes, Traffic};
