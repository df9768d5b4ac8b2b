//! What is said of pairs of hosts that differ from the others.
//!
//! Units:   slowness is a factor; 1 is like a quick pair.
//! Checked: the tests of `finding::pairs`.

use super::Words;
use crate::format::share;
use crate::lost::{Lost, LostAt, LostUnit};

/// How slow a pair is.
#[derive(Debug, Clone)]
pub(crate) struct Pair {
    pub src: String,
    pub dst: String,
    pub slow: f64,
}

/// What is lost where others are so many times as quick.
fn lost(at: LostAt, by: &str, slow: f64) -> Lost {
    let of = [1e3 * (slow - 1.0), 1e3 * slow];
    Lost::new(at, by, LostUnit::PerMille, of)
}

/// The slowest pairs with their figures.
fn listed(pairs: &[Pair]) -> String {
    let mut sorted: Vec<&Pair> = pairs.iter().collect();
    sorted.sort_by(|one, other| other.slow.total_cmp(&one.slow));
    let named = sorted.iter().take(6);
    let named: Vec<String> = named
        .map(|pair| format!("{}-{} x{:.2}", pair.src, pair.dst, pair.slow))
        .collect();
    let rest = match sorted.len().saturating_sub(named.len()) {
        0 => String::new(),
        rest => format!(", {rest} more"),
    };
    format!("{}{rest}", named.join(", "))
}

/// A host that stands apart.
pub(crate) struct Host<'r> {
    pub network: &'r str,
    pub host: &'r str,
    /// How many pairs it has, and how slow they are in the median.
    pub own: usize,
    pub usual: f64,
    pub pairs: &'r [Pair],
}

impl Words for Host<'_> {
    fn sentence(&self) -> String {
        format!(
            "{} is an outlier on {}: its {} pairs are {} slower than those of the other hosts.",
            self.host,
            self.network,
            self.own,
            share(self.usual - 1.0)
        )
    }

    fn arithmetic(&self) -> Option<String> {
        Some(listed(self.pairs))
    }

    fn remedy(&self) -> Option<String> {
        Some(format!(
            "look at {}: its interface (`ethtool`: rate, duplex, errors), its cable and port, its CPU's clock and load",
            self.host
        ))
    }

    fn lost(&self) -> Option<Lost> {
        Some(lost(LostAt::Host, self.host, self.usual))
    }
}

/// A pair that stands apart.
pub(crate) struct OddPair<'r> {
    pub network: &'r str,
    pub pair: &'r Pair,
    pub pairs: &'r [Pair],
}

impl Words for OddPair<'_> {
    fn sentence(&self) -> String {
        format!(
            "From {} to {} {} is {} slower than between other hosts, while these two are not slow with others.",
            self.pair.src,
            self.pair.dst,
            self.network,
            share(self.pair.slow - 1.0)
        )
    }

    fn arithmetic(&self) -> Option<String> {
        Some(listed(self.pairs))
    }

    fn remedy(&self) -> Option<String> {
        Some("suspect the path between the two, not the hosts: the route, a trunk between switches, a flow's queue".into())
    }

    fn lost(&self) -> Option<Lost> {
        let pair = self.pair;
        let way = format!("{}>{}", pair.src, pair.dst);
        Some(lost(LostAt::Route, &way, pair.slow))
    }
}
