//! Kernel settings, written to /proc/sys and read back.
//!
//! Model:   a setting took if what is read back equals what was written, white space aside. The program
//!          `sysctl -qw` is not used: it returns 0 even when the write fails.
//! Checked: `a_missing_setting_says_so`; `tests/netlink.rs` has a write that does not take.
//!
//! A namespace's settings are those of the thread that opens the file. In a network namespace of an
//! ordinary user net/core/{r,w}mem_* are read-only, and tcp_congestion_control refuses (EPERM) what
//! tcp_allowed_congestion_control lacks: there the algorithm is set by route.

use std::path::PathBuf;

use crate::error::read_text;
use crate::{Error, Result};

fn path(name: &str) -> PathBuf {
    PathBuf::from("/proc/sys").join(name)
}

fn normal(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The value of a setting such as `net/ipv4/tcp_rmem`, fields separated by one blank.
pub fn read(name: &str) -> Result<String> {
    Ok(normal(&read_text(path(name))?))
}

/// Writes a setting and reads it back; a different value is [`Error::NotTaken`].
pub fn write(name: &str, value: &str) -> Result<()> {
    let asked = normal(value);
    std::fs::write(path(name), &asked).map_err(|source| Error::File {
        what: format!("write \"{asked}\" to"),
        path: path(name),
        source,
    })?;
    let found = read(name)?;
    if found == asked {
        return Ok(());
    }
    Err(Error::NotTaken {
        name: name.into(),
        asked,
        found,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_setting_says_so() {
        assert!(!read("kernel/ostype").unwrap().is_empty());
        let error = read("kernel/no_such_setting").unwrap_err().to_string();
        assert!(
            error.contains("/proc/sys/kernel/no_such_setting"),
            "{error}"
        );
        assert!(write("kernel/ostype", "Other").is_err());
    }
}
