//! FTP of our own: a client and a server, with each stage of a transfer under a knob of its own.
//!
//! Model:   `dialogue` reads and writes the lines of the control connection, `session` is the server's side of it without a socket. `flow` moves a
//!          file between a store, the model of its disk and a data connection, by the copy buffer and the translation. `host` and `client`
//!          move both ends by sockets, `launch` measures, first each stage apart.
//! Source:  RFC 959, RFC 2428 (EPSV, EPRT), RFC 3659 §4 (SIZE), RFC 1123 §4.1.2. Deviations: stream mode and file structure alone; type E, L, block
//!          and compressed modes, record structure, APPE, REST and renaming are answered by 502 or 504. SIZE is answered for type I alone.

pub mod client;
pub mod data;
pub mod dialogue;
pub mod flow;
pub mod host;
pub(super) mod launch;
pub mod session;
pub mod translate;
