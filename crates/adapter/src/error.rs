//! Why an adapter cannot be used.

use std::path::PathBuf;

/// The result of loading.
pub type Result<T> = std::result::Result<T, LoadError>;

/// What makes a new adapter of what is here.
const REMEDY: &str = "build the adapters anew: `sonde doctor --build-adapters`";

/// Why an adapter cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// It could not be read.
    #[error("the adapter {} cannot be read: {why}; {REMEDY}", file.display())]
    Unreadable {
        /// Which.
        file: PathBuf,
        /// What the kernel said.
        why: std::io::Error,
    },
    /// It is not a shared object of this kind of machine.
    #[error("the adapter {} is {found}, and must be {wanted}; {REMEDY}", file.display())]
    Form {
        /// Which.
        file: PathBuf,
        /// What it is.
        found: String,
        /// What it must be.
        wanted: String,
    },
    /// The library that it needs could not be loaded.
    #[error(
        "the adapter {} cannot be loaded: {why}; is its library still installed, in the same version? then {REMEDY}",
        file.display()
    )]
    Library {
        /// Which.
        file: PathBuf,
        /// What the dynamic loader said.
        why: String,
    },
    /// It has no entry.
    #[error("{} is not an adapter of sonde: it has no function `sonde_adapter`; {REMEDY}", file.display())]
    Entry {
        /// Which.
        file: PathBuf,
    },
    /// Its table is of another number.
    #[error("the adapter {} speaks {found}, and this program table {wanted}; {REMEDY}", file.display())]
    Abi {
        /// Which.
        file: PathBuf,
        /// What it speaks.
        found: String,
        /// What this program speaks.
        wanted: u32,
    },
    /// Its table is shorter than its number says.
    #[error("the table of the adapter {} has {bytes} bytes, and must have {wanted}; {REMEDY}", file.display())]
    Short {
        /// Which.
        file: PathBuf,
        /// What it has.
        bytes: u32,
        /// What it must have.
        wanted: usize,
    },
    /// A function is missing.
    #[error("the table of the adapter {} lacks the function `{function}`; {REMEDY}", file.display())]
    Function {
        /// Which.
        file: PathBuf,
        /// The first that is missing.
        function: &'static str,
    },
    /// A text for the library that cannot be one of C.
    #[error("the option {name} of the adapter {} holds a zero byte", file.display())]
    Option {
        /// Which.
        file: PathBuf,
        /// The option, or `command`.
        name: String,
    },
    /// The library did not begin.
    #[error("{library} did not begin: {why}")]
    Begin {
        /// Who.
        library: String,
        /// What it said.
        #[source]
        why: sonde_message::Error,
    },
}
