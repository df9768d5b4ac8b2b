//! Where the time of each rank went, phase by phase, and how long its messages were.
//!
//! Model:   a line a rank and phase of the last run, in the order in which phases were entered; setup and verification are not in
//!          the kernel's time and say so. Held is the part of computing that a host of another age adds.
//! Units:   milliseconds, bytes.
//! Checked: `phases_and_lengths_are_shown`; `tests/lab_npb_trace.rs`.

use crate::output;
use sonde_measure::{npb::Kernel, npb::Phase};
use sonde_report::sheet;
use std::collections::BTreeMap;

const HEADS: [&str; 9] = [
    "rank",
    "phase",
    "timed",
    "computing ms",
    "held ms",
    "communicating ms",
    "messages",
    "bytes",
    "collectives",
];
/// Place of the column that only hosts of another age have.
const HELD: usize = 4;

/// Tables of a launch: phases, and lengths of the messages that all ranks sent in the timed part.
pub fn tables(kernel: &Kernel) -> String {
    let is_aged = kernel.age.is_some();
    let own = |mut line: Vec<String>| {
        if !is_aged {
            line.remove(HELD);
        }
        line
    };
    let ranks = kernel.ranks.iter().enumerate();
    let lines = ranks.flat_map(|(rank, one)| one.phases.iter().map(move |phase| line(rank, phase)));
    let heads = own(HEADS.map(String::from).to_vec());
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let phases = sheet(&heads, lines.map(own)).text(output::width());
    match lengths(kernel) {
        Some(lengths) => format!("{phases}\n\n{lengths}"),
        None => phases,
    }
}

fn line(rank: usize, phase: &Phase) -> Vec<String> {
    let millis = |ns: u64| format!("{:.3}", ns as f64 * 1e-6);
    let made = phase.collectives.iter().map(|made| made.count).sum::<u64>();
    vec![
        rank.to_string(),
        phase.name.clone(),
        if phase.timed { "yes" } else { "no" }.into(),
        millis(phase.computing_ns),
        millis(phase.held_ns),
        millis(phase.communicating_ns),
        phase.sent.total.messages.to_string(),
        phase.sent.total.bytes.to_string(),
        made.to_string(),
    ]
}

/// How many messages there are of which lengths, of all ranks; none where none was sent.
fn lengths(kernel: &Kernel) -> Option<String> {
    let sent = &kernel.runs.last()?.sent;
    let all = sent.total.messages;
    if all == 0 {
        return None;
    }
    let powers: BTreeMap<u64, u64> = sent
        .powers
        .iter()
        .map(|power| (power.from_bytes, power.messages))
        .collect();
    let lines = powers.iter().map(|(from, messages)| {
        let to = match from {
            0 => 0,
            _ => from.saturating_mul(2) - 1,
        };
        let share = *messages as f64 / all as f64 * 100.0;
        vec![
            format!("{from} to {to}"),
            messages.to_string(),
            format!("{share:.1} %"),
        ]
    });
    let table = sheet(&["bytes of a message", "messages", "of all"], lines);
    Some(table.text(output::width()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sonde_message::native::Memory;
    use sonde_probe::library::npb::Age;
    use sonde_units::Ratio;
    use sonde_workload::npb::Problem;
    use sonde_workload::npb::launch::Launch;

    fn ran(ranks: usize, age: Option<Age>) -> Kernel {
        let problem = Problem::named("is", "S").unwrap();
        let mut all = Memory::run(ranks, |messenger| {
            Launch::new(problem, age, None)
                .once(messenger, true)
                .unwrap()
        });
        let mut kernel = Kernel::new("is", "S");
        let ended = all.swap_remove(0).unwrap();
        kernel.runs.push(ended.run);
        (kernel.ranks, kernel.age) = (ended.ranks, ended.age);
        kernel
    }

    #[test]
    fn phases_and_lengths_are_shown() {
        let kernel = ran(4, None);
        let text = tables(&kernel);
        for word in [
            "computing ms",
            "communicating ms",
            "setup",
            "keys",
            "of all",
        ] {
            assert!(text.contains(word), "{word}: {text}");
        }
        assert!(!text.contains("held ms"), "{text}");
        let aged = tables(&ran(2, Some(Age::Factor(Ratio::new(3, 1)))));
        assert!(aged.contains("held ms"), "{aged}");
        // One rank alone sends nothing.
        assert!(!tables(&ran(1, None)).contains("of all"));
    }
}
