//! What is said of who came to a data port without being asked.
//!
//! Checked: the tests of `finding::strangers`.

use super::Words;
use crate::format::counted;

/// Connections and datagrams of others.
pub(crate) struct Strangers<'r> {
    pub network: &'r str,
    pub host: &'r str,
    pub count: u64,
    /// In which they came.
    pub launches: u64,
}

impl Words for Strangers<'_> {
    fn sentence(&self) -> String {
        format!(
            "While {} was measured, unauthenticated peers came to the data port of {} ({} in {}). They were refused, but the figures of \
             these repetitions may include their time.",
            self.network,
            self.host,
            counted(self.count, "attempt"),
            counted(self.launches, "repetition"),
        )
    }

    fn remedy(&self) -> Option<String> {
        Some("find out who scans this network, or measure on one that others cannot reach".into())
    }
}
