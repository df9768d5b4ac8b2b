//! Where a message's time goes, of each cell whose messages were cut at the kernel's stamps.
//!
//! Model:   of each launch the messages whose one-way time lies in its middle half; of these the mean of each part, and the
//!          mean over launches of these means. Parts of the same messages add up, so the sum of the parts is the one-way
//!          time; what a missing stamp leaves untold is the rest. The middle half, because a mean of all messages is
//!          that of the few which were put aside for milliseconds. Only the first thousand messages of a launch are kept one by
//!          one, which is as many as a launch of an anatomy has.
//! Source:  the interquartile mean; `sonde_stats::Series::first`.
//! Units:   nanoseconds, each part rounded down; one-way is the sum of the rounded parts and the rest.
//! Checked: `parts_are_of_the_middle_messages_and_add_up`, `what_is_not_told_is_the_rest`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sonde_measure::{CellRecord, CellResult, KnobValues, Line, LineField, Phase, Quantity};

use crate::index::Index;

/// The parts, in the order in which a message meets them, with what people call them.
pub(crate) const PARTS: [(Quantity, &str); 5] = [
    (Quantity::SendCallNs, "send call"),
    (Quantity::QueueNs, "queue"),
    (Quantity::WireNs, "wire"),
    (Quantity::WakeNs, "wake-up"),
    (Quantity::ReceiveNs, "receive call"),
];

/// Where the time of one cell's messages goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AnatomyRow {
    /// The cell.
    pub cell: String,
    /// The network.
    pub network: String,
    /// The path.
    pub path: String,
    /// How bytes are handed over, as `zerocopy`.
    #[serde(default)]
    pub method: Option<String>,
    /// What else was set, by name.
    #[serde(default)]
    pub knobs: KnobValues,
    /// `block` or `poll`.
    pub wait: Option<String>,
    /// The load, as `0.6`; null where the network was idle.
    pub load: Option<String>,
    /// The message's size.
    pub size_bytes: u64,
    /// Messages in the middle halves of all launches.
    pub messages: u64,
    /// From the call that sends to the return of the call that receives.
    pub one_way_ns: u64,
    /// Until the packet scheduler has it; null where its stamp was not to be had, here and below.
    pub send_call_ns: Option<u64>,
    /// Until the driver has it.
    pub queue_ns: Option<u64>,
    /// Until the peer's kernel took it from its driver.
    pub wire_ns: Option<u64>,
    /// Until the reader runs.
    pub wake_ns: Option<u64>,
    /// Until the call that receives has returned.
    pub receive_ns: Option<u64>,
    /// What could not be told apart.
    pub rest_ns: u64,
}

impl AnatomyRow {
    /// What it is of.
    pub(crate) fn line(&self) -> Line {
        Line {
            network: self.network.clone(),
            path: self.path.clone(),
            method: self.method.clone(),
            wait: self.wait.clone(),
            load: self.load.clone(),
            knobs: self.knobs.clone(),
        }
    }

    /// The path, with the method where it is not the usual one.
    pub(crate) fn by_method(&self) -> String {
        self.line()
            .without(&[LineField::Wait, LineField::Knobs])
            .by()
    }

    /// The parts in their order.
    pub fn parts(&self) -> [Option<u64>; 5] {
        [
            self.send_call_ns,
            self.queue_ns,
            self.wire_ns,
            self.wake_ns,
            self.receive_ns,
        ]
    }
}

/// All cells that were cut, in their order.
pub(crate) fn anatomies(index: &Index<'_>) -> Vec<AnatomyRow> {
    let cells = index.run.cells.iter();
    cells
        .filter(|cell| cell.factors.probe == "anatomy")
        .filter_map(|cell| row(index, cell))
        .collect()
}

/// The middle messages of one launch.
struct Middle {
    messages: u64,
    one_way_ns: u64,
    parts_ns: [Option<u64>; 5],
}

fn row(index: &Index<'_>, cell: &CellRecord) -> Option<AnatomyRow> {
    let made = index.repetitions(&cell.id);
    let launches: Vec<Middle> = made.filter_map(|one| middle(one.result)).collect();
    let count = launches.len() as u64;
    let mean = |of: &dyn Fn(&Middle) -> Option<u64>| {
        let sum: Option<u64> = launches.iter().map(of).sum();
        sum.and_then(|sum| sum.checked_div(count))
    };
    let parts: Vec<Option<u64>> = (0..5)
        .map(|at| mean(&|one: &Middle| one.parts_ns[at]))
        .collect();
    let known: u64 = parts.iter().flatten().sum();
    let whole = mean(&|one: &Middle| Some(one.one_way_ns))?;
    // Rounding alone leaves no rest.
    let rest_ns = match parts.iter().all(Option::is_some) {
        true => 0,
        false => whole.saturating_sub(known),
    };
    let line = cell.factors.line();
    Some(AnatomyRow {
        cell: cell.id.clone(),
        network: line.network,
        path: line.path,
        method: line.method,
        knobs: line.knobs,
        wait: line.wait,
        load: line.load,
        size_bytes: cell.factors.size_bytes,
        messages: launches.iter().map(|one| one.messages).sum(),
        one_way_ns: known + rest_ns,
        send_call_ns: parts[0],
        queue_ns: parts[1],
        wire_ns: parts[2],
        wake_ns: parts[3],
        receive_ns: parts[4],
        rest_ns,
    })
}

fn samples(result: &CellResult, quantity: Quantity) -> Option<&[u64]> {
    let found = result.samples(quantity, Phase::Warm)?;
    Some(found.first()).filter(|first| !first.is_empty())
}

fn middle(result: &CellResult) -> Option<Middle> {
    let whole = samples(result, Quantity::OneWayNs)?;
    let mut order: Vec<usize> = (0..whole.len()).collect();
    order.sort_by_key(|at| whole[*at]);
    let chosen = &order[whole.len() / 4..whole.len() - whole.len() / 4];
    let messages = chosen.len() as u64;
    let mean = |of: &[u64]| chosen.iter().map(|at| of[*at]).sum::<u64>() / messages;
    let part = |quantity| {
        // All are of the same messages, or it is not a cut of these.
        let of = samples(result, quantity).filter(|of| of.len() == whole.len());
        of.map(mean)
    };
    Some(Middle {
        messages,
        one_way_ns: mean(whole),
        parts_ns: PARTS.map(|(quantity, _)| part(quantity)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Runs, net};

    /// Messages of 100, 110 … ns; parts of 10, 20, 30 and the rest of it, and 5 for the last.
    fn run(missing: Option<Quantity>) -> Vec<AnatomyRow> {
        let whole: Vec<u64> = (0..40)
            .map(|n| if n == 7 { 4_000_000 } else { 100 + 10 * n })
            .collect();
        let part = |at: usize| -> Vec<u64> {
            let fixed = [10, 20, 30, 0, 5];
            let of = |whole: &u64| if at == 3 { whole - 65 } else { fixed[at] };
            whole.iter().map(of).collect()
        };
        let mut runs = Runs::new()
            .network(net("lan"))
            .anatomy("lan", "udp", 64, &whole);
        for (at, (quantity, _)) in PARTS.iter().enumerate() {
            if Some(*quantity) != missing {
                runs = runs.beside_each(*quantity, &part(at));
            }
        }
        anatomies(&Index::new(&runs.done()))
    }

    #[test]
    fn parts_are_of_the_middle_messages_and_add_up() {
        let rows = run(None);
        let [row] = &rows[..] else { panic!("{rows:?}") };
        let sum: u64 = row.parts().into_iter().flatten().sum();
        assert_eq!((row.rest_ns, row.one_way_ns), (0, sum));
        // The one that was put aside for 4 ms is not among them.
        assert!((200..=400).contains(&row.one_way_ns), "{row:?}");
        assert_eq!(
            (row.send_call_ns, row.queue_ns, row.wire_ns),
            (Some(10), Some(20), Some(30))
        );
        assert_eq!(row.messages % 20, 0);
    }

    #[test]
    fn what_is_not_told_is_the_rest() {
        let rows = run(Some(Quantity::WireNs));
        assert_eq!((rows[0].wire_ns, rows[0].rest_ns), (None, 30));
        assert_eq!(rows[0].one_way_ns, run(None)[0].one_way_ns);
    }
}
