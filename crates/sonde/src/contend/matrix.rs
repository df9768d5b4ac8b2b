//! Who slows whom, as it is printed: a matrix for each network.
//!
//! Model:   rows are who is slowed, columns by whom; below each row stands what the CPUs alone do, where that is known. What is judged
//!          and said is [`Contention`]'s.
//! Checked: `planted_figures_become_slow_downs`.

use sonde_report::{CPU_ALONE, Contention, Slowdown, SlowdownMatrix, SlowdownRow, sheet};

/// Prints it as a matrix for each network.
pub fn print(found: &Contention, width: usize, print: impl Fn(&str)) {
    let during = found.during.as_deref().unwrap_or("-");
    for matrix in found.matrices() {
        print(&format!(
            "{}: how many times as long each takes beside others, {during} at once",
            matrix.network
        ));
        print(&table(&matrix, width));
    }
    found.reasons().iter().for_each(|why| print(why));
    for sentence in &found.sentences {
        print(sentence);
    }
}

fn table(matrix: &SlowdownMatrix, width: usize) -> String {
    let columns = matrix.columns.iter().map(String::as_str);
    let heads: Vec<&str> = std::iter::once("slowed").chain(columns).collect();
    let line = |head: String, row: &SlowdownRow, of: &dyn Fn(&Slowdown) -> Option<String>| {
        let dash = || "-".to_owned();
        let cells = row.cells.iter().map(|one| one.as_ref().and_then(of));
        let cells = cells.map(|text| text.unwrap_or_else(dash));
        std::iter::once(head).chain(cells).collect::<Vec<String>>()
    };
    let mut lines = Vec::new();
    for row in &matrix.rows {
        lines.push(line(row.workload.clone(), row, &|one| Some(text(one))));
        let cpu = |one: &Slowdown| one.cpu_slowdown.map(|cpu| format!("{:.2}", cpu.0));
        if row.cells.iter().flatten().any(|one| cpu(one).is_some()) {
            lines.push(line(
                format!("  by the CPUs alone ({CPU_ALONE})"),
                row,
                &cpu,
            ));
        }
    }
    sheet(&heads, lines).loose().text(width)
}

/// The figure, its interval, and what follows.
fn text(one: &Slowdown) -> String {
    let word = one.state.words();
    match (one.slowdown, one.low, one.high) {
        (None, ..) => word.into(),
        (Some(value), Some(low), Some(high)) => {
            format!("{:.2} ({:.2}-{:.2}) {word}", value.0, low.0, high.0)
        }
        (Some(value), ..) => format!("{:.2} {word}", value.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::planted::planted;
    use sonde_measure::workload;
    use sonde_measure::{CellRecord, Number, Quantity};
    use sonde_report::SlowdownState;

    const PLAN: &str = "[testbed]\nkind = \"lab\"\n[[probe]]\nkind = \"throughput\"\nname = \"stream\"\n[[probe]]\n\
                        kind = \"latency\"\nname = \"latency\"\n[[load]]\ntogether = [\"stream\"]\n[[load]]\n\
                        together = [\"latency\"]\n[[load]]\ntogether = [\"stream\", \"latency\"]\n";

    /// A stream of half its rate beside a ping-pong that takes three times as long; on `wire` nothing happens.
    fn figure(cell: &CellRecord, index: u64) -> Option<(Quantity, u64)> {
        let is_alone = cell.factors.load.is_none() || cell.factors.network == "wire";
        let value = match (cell.factors.probe.as_str(), is_alone) {
            ("throughput", true) => 9_000_000 + index * 1_000,
            ("throughput", false) => 4_500_000 + index * 1_000,
            (_, true) => 200_000 + index,
            (_, false) => 600_000 + index,
        };
        Some((workload::figure(&cell.factors), value))
    }

    #[test]
    fn planted_figures_become_slow_downs() {
        let found = Contention::of(&planted(PLAN, &["ethernet-10", "wire"], 6, figure));
        assert_eq!(found.during.as_deref(), Some("3s"));
        assert_eq!(found.slowdowns.len(), 4);
        let [stream, latency, on_wire, _] = &found.slowdowns[..] else {
            panic!("{found:?}");
        };
        assert_eq!(
            (&*stream.workload, &*stream.beside),
            ("stream", &["latency".to_owned()][..])
        );
        assert!((stream.slowdown.unwrap().0 - 2.0).abs() < 0.01);
        assert!((latency.slowdown.unwrap().0 - 3.0).abs() < 0.01);
        assert_eq!(latency.alone, Some(Number(200_002.0)));
        assert_eq!(
            (stream.state, latency.state),
            (SlowdownState::Slowed, SlowdownState::Slowed)
        );
        assert_eq!(
            (on_wire.state, on_wire.cpu_slowdown),
            (SlowdownState::NotSlowed, None)
        );
        assert!((stream.cpu_slowdown.unwrap().0 - 1.0).abs() < 0.01);
        let mut text = String::new();
        let lines = std::cell::RefCell::new(&mut text);
        print(&found, 100, |line| {
            lines.borrow_mut().push_str(line);
            lines.borrow_mut().push('\n');
        });
        for part in [
            "ethernet-10: how many",
            "2.00 (2.00-2.00) slowed",
            "by the CPUs alone (wire)",
            "1.00",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
