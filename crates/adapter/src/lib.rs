//! Message-passing libraries behind one table of functions: loaded while the program runs, never linked.
//!
//! Model:   an adapter is a shared object with one entry, which gives a table (`adapters/sonde_adapter.h`). It is opened with
//!          RTLD_GLOBAL, since Open MPI's components look for its symbols, and never closed again.
//! Units:   bytes; ranks count from zero.
//! Checked: `tests/loading.rs` with adapters that are wrong, `tests/libraries.rs` with the libraries that are here.
//!
//! With `sys` and `channel` the only crate that may write `unsafe`. Only `sonde-rank` sees it: `sonde` is static and loads
//! nothing.

mod abi;
mod collective;
mod error;
mod group;
mod load;
mod loaded;
mod meeting;
mod slots;
mod watch;

pub use error::{LoadError, Result};
pub use load::{Allgather, Bootstrap, Options, ThreadLevel, open};
pub use loaded::Loaded;
pub use meeting::meet;
