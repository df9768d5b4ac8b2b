//! A replay made once among ranks and counted: what all of them sent, held against what was asked for, at rank 0.
//!
//! Model:   every rank calls [`once`] with the same sequence. Its messenger is wrapped in the one that counts; lengths travel to
//!          rank 0 when the replay is over and must be those of the sequence: their number, sum, shortest and longest exactly,
//!          each length to a 64th of itself. The time is that of the longest rank.
//! Units:   nanoseconds, bytes.
//! Checked: `ranks_tell_what_was_asked_for`, `what_was_not_asked_for_is_an_error`, `a_matrix_is_followed`.

use serde::{Deserialize, Serialize};
use sonde_measure::{replay::ReplayRequest, replay::Run};
use sonde_message::counted::{Counted, Lengths};
use sonde_message::{Comm, Messenger};
use sonde_probe::library::{hear, tell};
use sonde_probe::{Error, Result};
use sonde_units::Matrix;

use super::{BYTES_MAX, Graph, Outcome, Refused, Sequence, Statistic, run};

/// The phase of the messages of a sequence.
const TIMED: &str = "replay";

/// What a rank tells rank 0.
#[derive(Serialize, Deserialize)]
struct RankReport {
    timed_ns: u64,
    wrong: u64,
    sent: Lengths,
}

/// The statistic of what is asked for.
pub fn statistic(asked: &ReplayRequest) -> Statistic {
    Statistic {
        messages: asked.messages,
        bytes_mean: asked.bytes_mean(),
        bytes_median: asked.bytes_median,
    }
}

/// The graph of what is asked for.
///
/// # Errors
/// [`Refused`]: a matrix that takes no such number of ranks.
pub fn graph(asked: &ReplayRequest) -> std::result::Result<Graph, Refused> {
    let ranks = asked.messages_to.len();
    if ranks == 0 {
        let Ok(graph) = asked.graph.parse();
        return Ok(graph);
    }
    let mut matrix = Matrix::new(ranks).map_err(|_| Refused::Silent(ranks))?;
    for (from, row) in asked.messages_to.iter().enumerate() {
        for (to, messages) in row.iter().enumerate().take(ranks) {
            matrix.add(from, to, 0, *messages);
        }
    }
    Ok(Graph::Matrix(matrix))
}

/// The messages that are asked for, among so many ranks.
///
/// # Errors
/// [`Refused`]: there are none.
pub fn sequence(asked: &ReplayRequest, ranks: usize) -> std::result::Result<Sequence, Refused> {
    let graph = graph(asked)?;
    Sequence::new(&statistic(asked), &graph, ranks, BYTES_MAX, asked.seed)
}

/// Replays it once; all ranks call it. What all had of it, at rank 0.
///
/// # Errors
/// Those of the messenger; messages came otherwise than they were sent, or were others than asked for.
pub fn once(sequence: &Sequence, messenger: &mut dyn Messenger) -> Result<Option<Run>> {
    let mut counted = Counted::new(&mut *messenger);
    let outcome = run(&mut counted, sequence, 0)?;
    let own = RankReport {
        timed_ns: outcome.timed_ns,
        wrong: outcome.wrong,
        sent: counted.sent(|phase| phase == TIMED),
    };
    agree(&outcome, &own.sent)?;
    if messenger.rank(Comm::WORLD) > 0 {
        tell(messenger, 0, &own)?;
        return Ok(None);
    }
    let mut all = vec![own];
    for other in 1..messenger.size(Comm::WORLD) {
        all.push(hear(messenger, other)?);
    }
    together(sequence, &all).map(Some)
}

/// What a rank counted is what it sent.
fn agree(outcome: &Outcome, sent: &Lengths) -> Result<()> {
    let total = sent.row().total;
    if (total.messages, total.bytes) == (outcome.messages, outcome.bytes) {
        return Ok(());
    }
    Err(Error::Integrity(format!(
        "{} messages of {} B were counted where a rank sent {} of {} B",
        total.messages, total.bytes, outcome.messages, outcome.bytes
    )))
}

/// All ranks together, held against what was asked for.
fn together(sequence: &Sequence, all: &[RankReport]) -> Result<Run> {
    let wrong: u64 = all.iter().map(|seen| seen.wrong).sum();
    if wrong > 0 {
        return Err(Error::Integrity(format!(
            "{wrong} messages of a replay arrived changed"
        )));
    }
    let mut sent = Lengths::new();
    all.iter().for_each(|seen| sent.merge(&seen.sent));
    let asked = sequence.messages().iter().map(|one| one.bytes);
    let asked: Lengths = asked.collect();
    if sent != asked {
        let words = |lengths: &Lengths| {
            let total = lengths.row().total;
            format!(
                "{} messages of {} to {} B, {} B together",
                total.messages, total.bytes_min, total.bytes_max, total.bytes
            )
        };
        return Err(Error::Integrity(format!(
            "a replay of {} was counted as {}",
            words(&asked),
            words(&sent)
        )));
    }
    let times = all.iter().map(|seen| seen.timed_ns);
    Ok(Run {
        time_ns: times.max().unwrap_or(0),
        sent: sent.row(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use sonde_message::native::Memory;

    fn asked(messages: u64, bytes: u64, median: u64, graph: &str) -> ReplayRequest {
        ReplayRequest {
            messages,
            bytes,
            bytes_median: median,
            graph: graph.into(),
            messages_to: Vec::new(),
            seed: 3,
        }
    }

    #[test]
    fn ranks_tell_what_was_asked_for() {
        for (asked, ranks) in [
            (asked(700, 90_000, 8, "ring"), 3),
            (asked(41, 41 * 5_000, 5_001, "all-to-all"), 4),
            (asked(5, 0, 0, "mesh:2x3"), 6),
        ] {
            let sequence = sequence(&asked, ranks).unwrap();
            let mut all = Memory::run(ranks, |messenger| once(&sequence, messenger).unwrap());
            assert!(all[1..].iter().all(Option::is_none));
            let run = all.swap_remove(0).unwrap();
            let total = run.sent.total;
            assert_eq!((total.messages, total.bytes), (asked.messages, asked.bytes));
            let median = run.sent.bytes_median.unwrap();
            assert!(median.abs_diff(asked.bytes_median) <= asked.bytes_median / 64);
            assert!(run.time_ns > 0);
        }
    }

    #[test]
    fn what_was_not_asked_for_is_an_error() {
        let sequence = sequence(&asked(4, 4_000, 1_000, "ring"), 2).unwrap();
        let seen = |lengths: &[u64], wrong| RankReport {
            timed_ns: 5,
            wrong,
            sent: lengths.iter().copied().collect(),
        };
        let fine = together(&sequence, &[seen(&[1_000; 2], 0), seen(&[1_000; 2], 0)]).unwrap();
        assert_eq!((fine.time_ns, fine.sent.total.messages), (5, 4));
        for (first, wrong, said) in [
            (&[1_000; 2][..], 1, "1 messages of a replay arrived changed"),
            (&[1_000; 3], 0, "counted as 5 messages"),
            (&[900, 1_100], 0, "900 to 1100 B"),
        ] {
            let all = [seen(first, wrong), seen(&[1_000; 2], 0)];
            let error = together(&sequence, &all).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
        let outcome = Outcome {
            timed_ns: 1,
            messages: 2,
            bytes: 9,
            wrong: 0,
        };
        let error = agree(&outcome, &[9].into_iter().collect()).unwrap_err();
        assert!(error.to_string().contains("sent 2 of 9 B"), "{error}");
    }

    #[test]
    fn a_matrix_is_followed() {
        let mut asked = asked(12, 120, 10, "matrix");
        asked.messages_to = vec![vec![7, 3, 0], vec![0, 0, 1], vec![0, 0, 0]];
        let sequence = sequence(&asked, 3).unwrap();
        let of = |from, to| {
            let messages = sequence.messages().iter();
            messages
                .filter(|one| (one.from, one.to) == (from, to))
                .count()
        };
        // What a rank sends to itself is left out.
        assert_eq!((of(0, 1), of(1, 2)), (9, 3));
        let refused = super::sequence(&asked, 4).unwrap_err().to_string();
        assert!(
            refused.contains("is of 3 ranks, and there are 4"),
            "{refused}"
        );
        asked.messages_to = vec![vec![1]];
        assert!(super::sequence(&asked, 1).is_err());
    }
}
