//! What is said of who came to a data port without being asked.
//!
//! Checked: the tests of `finding::strangers`.

use super::Words;
use crate::format::count;

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
            "While {} was measured strangers came to the data port of {} ({} in all, launches concerned: {}). They were turned away \
             unheard, and what these launches measured may hold their time.",
            self.network,
            self.host,
            count(self.count),
            count(self.launches),
        )
    }

    fn remedy(&self) -> Option<String> {
        Some("look who scans this network, or measure on one that others do not reach".into())
    }
}
