//! What is said of the rung that loses most, and of what libraries cost.
//!
//! Units:   nanoseconds of half a round trip; picoseconds a byte.
//! Checked: the tests of `finding::layer_cost` and `library`.

use super::Words;
use crate::format::{bytes, completion, significant};
use crate::library::{Cost as Difference, LibraryRow};
use crate::lost::{Lost, LostAt, LostUnit};

/// What a library costs at one size.
pub(crate) struct Cost {
    pub path: String,
    pub cost: Difference,
}

impl Cost {
    fn words(&self, beneath: &str) -> String {
        match self.cost.is_none_possible() {
            true => format!("{} (not distinguishable from {beneath})", self.path),
            false => format!("{} ({} µs)", self.path, signed(self.cost.value)),
        }
    }

    /// The number with its sign and interval, where the sentence has none.
    fn figure(&self) -> Option<String> {
        self.cost
            .is_none_possible()
            .then(|| format!("; {} {}", self.path, self.cost.told("µs")))
    }
}

/// One size: the parts of the way, and by which libraries the one or the other is the larger.
pub(crate) struct Size {
    pub size_bytes: u64,
    pub wire_ns: i64,
    /// Above the wire.
    pub transport_ns: i64,
    pub more: Vec<Cost>,
    pub less: Vec<Cost>,
    pub alike: Vec<Cost>,
}

/// What loses most, for the smallest and the largest size.
pub(crate) struct LayerCost {
    pub network: String,
    pub wait: Option<String>,
    pub beneath: String,
    pub sizes: Vec<Size>,
}

impl Words for LayerCost {
    fn sentence(&self) -> String {
        let of_size = |size: &Size| {
            let parts = [
                (&size.more, "loses most from transport to library"),
                (&size.less, "loses most from wire to transport"),
                (&size.alike, "loses alike on both"),
            ];
            let parts = parts.iter().filter(|(costs, _)| !costs.is_empty());
            let parts = parts.map(|(costs, what)| {
                let costs = costs.iter().map(|cost| cost.words(&self.beneath));
                format!("{what} with {}", costs.collect::<Vec<_>>().join(", "))
            });
            format!(
                "a message of {} {}",
                bytes(size.size_bytes),
                parts.collect::<Vec<_>>().join(", and ")
            )
        };
        let sizes: Vec<String> = self.sizes.iter().map(of_size).collect();
        format!(
            "On {} ({}), {}",
            self.network,
            self.wait.as_deref().map_or("equal completion", completion),
            sizes.join("; ")
        )
    }

    fn arithmetic(&self) -> Option<String> {
        let beneath = &self.beneath;
        let of_size = |size: &Size| {
            let costs = [&size.more, &size.less, &size.alike];
            let hidden = costs.into_iter().flatten().filter_map(Cost::figure);
            format!(
                "{}: wire {} µs, {beneath} {} µs above it; in brackets the cost of each library above {beneath}{}",
                bytes(size.size_bytes),
                micros(size.wire_ns),
                micros(size.transport_ns),
                hidden.collect::<String>()
            )
        };
        let sizes: Vec<String> = self.sizes.iter().map(of_size).collect();
        Some(sizes.join("; "))
    }

    /// What the transport and the hosts take of the smallest message, where they sleep for it and the wire takes some of it: a poller's time is
    /// that of its CPU, and of a wire that takes none all is theirs.
    fn lost(&self) -> Option<Lost> {
        let polls = self.wait.as_deref() == Some("poll");
        let size = self
            .sizes
            .first()
            .filter(|size| !polls && size.wire_ns > 0)?;
        let part = size.transport_ns as f64;
        let of = [part, part + size.wire_ns as f64];
        (part > 0.0).then(|| Lost::new(LostAt::Hosts, &self.beneath, LostUnit::Ns, of))
    }
}

fn micros(ns: i64) -> String {
    significant(ns as f64 / 1e3, 3)
}

fn signed(ns: i64) -> String {
    let sign = if ns < 0 { "" } else { "+" };
    format!("{sign}{}", micros(ns))
}

/// What a library costs for each message and each byte.
pub(crate) struct Library<'r> {
    pub row: &'r LibraryRow,
}

impl Words for Library<'_> {
    fn sentence(&self) -> String {
        let row = self.row;
        let wait = row
            .wait
            .as_deref()
            .map_or("with the same completion", completion);
        let of_bytes =
            row.per_byte_ps
                .map_or(String::new(), |cost| match cost.is_none_possible() {
                    true => format!(
                        "; for each byte it is not distinguishable from {}",
                        row.beneath
                    ),
                    false => format!(", and {} for each byte", cost.told("ns")),
                });
        let (verb, to, cost) = match row.per_message_ns.value {
            ..0 => ("saves", "against", row.per_message_ns.turned()),
            _ => ("adds", "to", row.per_message_ns),
        };
        format!(
            "{} {verb} {} per message {to} {} on {} (both {wait}){of_bytes}",
            row.path,
            cost.told("µs"),
            row.beneath,
            row.network
        )
    }

    fn arithmetic(&self) -> Option<String> {
        let row = self.row;
        let sizes = row.sizes.iter().map(|size| {
            format!(
                "{} {} µs, {} {} µs",
                bytes(size.size_bytes),
                significant(size.library_ns as f64 / 1e3, 3),
                row.beneath,
                significant(size.transport_ns as f64 / 1e3, 3)
            )
        });
        let hidden = row.per_byte_ps.filter(Difference::is_none_possible);
        let hidden = hidden.map_or(String::new(), |cost| {
            format!("; for each byte {}", cost.told("ns"))
        });
        Some(format!(
            "one-way latency (RTT/2): {}{hidden}",
            sizes.collect::<Vec<_>>().join("; ")
        ))
    }

    fn lost(&self) -> Option<Lost> {
        let (cost, size) = (self.row.per_message_ns, self.row.sizes.first()?);
        let of = [cost.value as f64, size.library_ns as f64];
        (cost.value > 0).then(|| Lost::new(LostAt::Library, &self.row.path, LostUnit::Ns, of))
    }
}
