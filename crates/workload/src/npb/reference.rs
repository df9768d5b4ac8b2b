//! The official values, and others that stand in where there are none.
//!
//! Model:   `data/npb-verification.toml` says where each value is from; a kernel reads its own table of it.
//! Source:  NPB 3.4.3.

use serde::de::DeserializeOwned;

use super::Class;

const VALUES: &str = include_str!("../../data/npb-verification.toml");

/// What is known of a kernel's class, `[ep.S]`; none where nothing is.
pub fn of<T: DeserializeOwned>(kernel: &str, class: Class) -> Option<T> {
    table(kernel, class.name())
}

/// What is known of a size that is not a class, `[unofficial.ep_m23]`.
pub fn unofficial<T: DeserializeOwned>(name: &str) -> Option<T> {
    table("unofficial", name)
}

/// A table of the file.
///
/// # Panics
/// Where the file is broken: it is part of the program.
fn table<T: DeserializeOwned>(part: &str, name: &str) -> Option<T> {
    let values: toml::Table = VALUES.parse().expect("the file of values is TOML");
    let found = values.get(part)?.get(name)?.clone();
    Some(
        found
            .try_into()
            .expect("a table of values is as its kernel reads it"),
    )
}
