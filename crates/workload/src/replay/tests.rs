//! Sequences against their statistics, and replays against what is counted of them.

use proptest::prelude::*;
use sonde_message::counted::Counted;
use sonde_message::native::Memory;

use super::*;
use crate::npb::Kernel;

fn median(lengths: &[u64]) -> u64 {
    let mut sorted = lengths.to_vec();
    sorted.sort_unstable();
    sorted[(sorted.len() - 1) / 2]
}

fn of(lengths: &[u64]) -> Statistic {
    Statistic {
        messages: lengths.len() as u64,
        bytes_mean: lengths.iter().sum::<u64>() as f64 / lengths.len() as f64,
        bytes_median: median(lengths),
    }
}

/// Whether some lengths up to `max` have this count, sum and median: all of them are tried.
fn exist(count: usize, total: u64, wanted: u64, max: u64) -> bool {
    let base = max + 1;
    (0..base.pow(count as u32)).any(|code| {
        let lengths: Vec<u64> = (0..count as u32)
            .map(|at| code / base.pow(at) % base)
            .collect();
        lengths.iter().sum::<u64>() == total && median(&lengths) == wanted
    })
}

proptest! {
    #[test]
    fn lengths_have_their_statistic(
        drawn in prop::collection::vec((0_u64..1 << 30, 0_u32..31), 1..300),
    ) {
        let drawn: Vec<u64> = drawn.into_iter().map(|(bytes, shift)| bytes >> shift).collect();
        let statistic = of(&drawn);
        let longest = *drawn.iter().max().unwrap();
        let lengths = statistic.lengths(longest).unwrap();
        prop_assert_eq!(lengths.len(), drawn.len());
        prop_assert_eq!(median(&lengths), statistic.bytes_median);
        prop_assert_eq!(lengths.iter().sum::<u64>(), drawn.iter().sum::<u64>());
        prop_assert!(lengths.iter().all(|bytes| *bytes <= longest));
        prop_assert_eq!(statistic.longest(longest), Ok(*lengths.iter().max().unwrap()));
    }

    #[test]
    fn means_between_bytes_are_within_one(count in 1_u64..2_000, median_bytes in 0_u64..5_000, per_mille in 0_u64..1_000_000) {
        let statistic = Statistic {
            messages: count,
            bytes_mean: median_bytes as f64 + per_mille as f64 / 1_000.0,
            bytes_median: median_bytes,
        };
        let Ok(lengths) = statistic.lengths(1 << 40) else {
            // Only a message alone cannot be longer than the median.
            prop_assert_eq!(count, 1);
            return Ok(());
        };
        let mean = lengths.iter().sum::<u64>() as f64 / count as f64;
        prop_assert!((mean - statistic.bytes_mean).abs() <= 1.0, "{} {}", mean, statistic.bytes_mean);
        prop_assert_eq!(median(&lengths), median_bytes);
    }

    #[test]
    fn what_cannot_be_is_refused_and_nothing_else(count in 1_usize..6, total in 0_u64..24, wanted in 0_u64..6, max in 0_u64..5) {
        let statistic = Statistic {
            messages: count as u64,
            bytes_mean: total as f64 / count as f64,
            bytes_median: wanted,
        };
        match statistic.lengths(max) {
            Ok(lengths) => {
                prop_assert!(exist(count, total, wanted, max), "{:?}", lengths);
                prop_assert_eq!(lengths.iter().sum::<u64>(), total);
                prop_assert_eq!((lengths.len(), median(&lengths)), (count, wanted));
            }
            Err(refused) => {
                prop_assert!(!exist(count, total, wanted, max), "{}", refused);
                let is_infeasible = matches!(refused, Refused::Infeasible { .. });
                prop_assert!(is_infeasible);
            }
        }
    }

    #[test]
    fn sequences_are_whole_and_lock_nothing_up(
        ranks in 2_usize..10, messages in 1_u64..400, kind in 0_usize..4, seed: u64,
        cells in prop::collection::vec(0_u64..50, 81),
    ) {
        let graph = match kind {
            0 => Graph::AllToAll,
            1 => Graph::Neighbours("ring".into()),
            2 => Graph::Neighbours("mesh".into()),
            _ => {
                let mut matrix = Matrix::new(ranks).unwrap();
                matrix.add(0, 1, 1, 1);
                for (at, count) in cells.iter().enumerate().take(ranks * ranks) {
                    matrix.add(at / ranks, at % ranks, 0, *count);
                }
                Graph::Matrix(matrix)
            }
        };
        let statistic = Statistic { messages, bytes_mean: 70.0, bytes_median: 70 };
        let sequence = Sequence::new(&statistic, &graph, ranks, BYTES_MAX, seed).unwrap();
        prop_assert_eq!(sequence.messages().len() as u64, messages);
        prop_assert_eq!(sequence.steps().map(<[Message]>::len).sum::<usize>() as u64, messages);
        let edges = graph.edges(ranks).unwrap();
        let counts = apportioned(messages, &edges);
        for (edge, count) in edges.iter().zip(counts) {
            let sent = sequence.messages().iter().filter(|one| (one.from as usize, one.to as usize) == (edge.from, edge.to));
            prop_assert_eq!(sent.count() as u64, count);
            let whole: u64 = edges.iter().map(|edge| edge.weight).sum();
            prop_assert!((count as f64 - messages as f64 * edge.weight as f64 / whole as f64).abs() < 1.0);
        }
        prop_assert!(ends_without_buffers(&sequence), "it locks up");
        prop_assert_eq!(Sequence::new(&statistic, &graph, ranks, BYTES_MAX, seed).unwrap(), sequence);
    }
}

/// Whether all ranks come to their end where a send waits for its receive: what a rank posts ends as soon as the other has
/// posted its part, and the next step is posted when all of the last one has ended.
fn ends_without_buffers(sequence: &Sequence) -> bool {
    let mut steps: Vec<Vec<Step>> = (0..sequence.ranks())
        .map(|rank| sequence.of(rank))
        .collect();
    steps.iter_mut().for_each(|steps| steps.reverse());
    loop {
        let mut has_moved = false;
        for rank in 0..steps.len() {
            let Some(Step {
                send: Some((to, bytes)),
                ..
            }) = steps[rank].last().copied()
            else {
                continue;
            };
            let posted = steps[to].last().and_then(|step| step.recv);
            if posted == Some((rank, bytes)) {
                steps[rank].last_mut().unwrap().send = None;
                steps[to].last_mut().unwrap().recv = None;
                has_moved = true;
            }
        }
        for steps in &mut steps {
            let done = Step {
                send: None,
                recv: None,
            };
            while steps.last() == Some(&done) {
                steps.pop();
            }
        }
        if !has_moved {
            return steps.iter().all(Vec::is_empty);
        }
    }
}

#[test]
fn seeds_shuffle_lengths() {
    let statistic = Statistic {
        messages: 100,
        bytes_mean: 100.0,
        bytes_median: 8,
    };
    let graph = Graph::AllToAll;
    let lengths = |seed| -> Vec<u64> {
        let sequence = Sequence::new(&statistic, &graph, 4, BYTES_MAX, seed).unwrap();
        sequence.messages().iter().map(|one| one.bytes).collect()
    };
    let (first, second) = (lengths(1), lengths(2));
    assert_ne!(first, second);
    for lengths in [first, second] {
        assert_eq!((median(&lengths), lengths.iter().sum::<u64>()), (8, 10_000));
    }
}

#[test]
fn a_replay_is_counted_as_its_statistic() {
    for kernel in [Kernel::Cg, Kernel::Ft, Kernel::Is, Kernel::Mg, Kernel::Lu] {
        let (statistic, graph) = upc::known(kernel).statistic.unwrap();
        let sequence = Sequence::new(&statistic, &graph, upc::RANKS, BYTES_MAX, 7).unwrap();
        let ended = Memory::run(upc::RANKS, |messenger| {
            let mut counted = Counted::new(messenger);
            let outcome = run(&mut counted, &sequence, 0).unwrap();
            (outcome, counted.profile())
        });
        let (mut messages, mut bytes) = (0, 0);
        for (outcome, profile) in &ended {
            assert_eq!(outcome.wrong, 0, "{kernel}");
            let phase = profile.phases.iter().find(|phase| phase.name == "replay");
            let total = phase.unwrap().sent.total;
            assert_eq!(
                (total.messages, total.bytes),
                (outcome.messages, outcome.bytes)
            );
            messages += total.messages;
            bytes += total.bytes;
        }
        assert_eq!(messages, statistic.messages, "{kernel}");
        let mean = bytes as f64 / messages as f64;
        assert!(
            (mean - statistic.bytes_mean).abs() <= 1.0,
            "{kernel} {mean}"
        );
    }
}

#[test]
fn computing_takes_the_cpu() {
    let statistic = Statistic {
        messages: 12,
        bytes_mean: 5.0,
        bytes_median: 5,
    };
    let sequence = Sequence::new(&statistic, &Graph::AllToAll, 3, BYTES_MAX, 0).unwrap();
    let ended = Memory::run(3, |messenger| run(messenger, &sequence, 500_000).unwrap());
    for outcome in ended {
        // Four steps of half a millisecond each.
        assert!(outcome.timed_ns >= 2_000_000 && outcome.messages == 4);
    }
}

#[test]
fn kernels_are_as_the_paper_has_them() {
    // upc.t1.KERNEL.volume in MB, which the paper's number and mean give.
    let volumes = [
        (Kernel::Cg, 13.969),
        (Kernel::Ft, 44.04),
        (Kernel::Is, 42.747),
        (Kernel::Mg, 25.632),
        (Kernel::Lu, 3.222),
        (Kernel::Sp, 182.925),
        (Kernel::Bt, 181.581),
    ];
    for (kernel, volume) in volumes {
        let (statistic, graph) = upc::known(kernel).statistic.unwrap();
        let sequence = Sequence::new(&statistic, &graph, upc::RANKS, BYTES_MAX, 1).unwrap();
        let lengths: Vec<u64> = sequence.messages().iter().map(|one| one.bytes).collect();
        let megabytes = lengths.iter().sum::<u64>() as f64 / 1e6;
        assert!((megabytes - volume).abs() < 0.001, "{kernel} {megabytes}");
        assert_eq!(lengths.len() as u64, statistic.messages);
        assert_eq!(median(&lengths), statistic.bytes_median, "{kernel}");
    }
    let ep = upc::known(Kernel::Ep);
    assert_eq!((ep.size.as_str(), ep.statistic), ("2^23 size", None));
}

#[test]
fn refusals_say_why() {
    let statistic = |messages, bytes_mean, bytes_median| Statistic {
        messages,
        bytes_mean,
        bytes_median,
    };
    let said = |statistic: Statistic| statistic.lengths(100).unwrap_err().to_string();
    assert!(said(statistic(0, 1.0, 1)).contains("1 message or more"));
    assert!(said(statistic(1 << 30, 1.0, 1)).contains("replay a part"));
    assert!(said(statistic(5, f64::NAN, 1)).contains("a number from 0 on"));
    assert!(said(statistic(5, -1.0, 1)).contains("-1 B"));
    assert!(said(statistic(5, 101.0, 101)).contains("longer than the longest"));
    let low = said(statistic(5, 1.0, 10));
    assert!(
        low.contains("3 are as long") && low.contains("mean is 6 B at least"),
        "{low}"
    );
    let high = said(statistic(4, 90.0, 10));
    assert!(
        high.contains("2 are as long") && high.contains("mean is 55 B at most"),
        "{high}"
    );
    let fine = statistic(9, 10.0, 10);
    let refused = |graph: Graph, ranks| {
        let refused = Sequence::new(&fine, &graph, ranks, BYTES_MAX, 0);
        refused.unwrap_err().to_string()
    };
    assert!(refused(Graph::AllToAll, 1).contains("nobody sends"));
    assert!(refused("mesh:2x2".parse().unwrap(), 3).contains("it has 4 points"));
    assert!(refused("star".parse().unwrap(), 3).contains("or all-to-all"));
    let matrix = Matrix::new(2).unwrap();
    assert!(refused(Graph::Matrix(matrix.clone()), 3).contains("is of 2 ranks, and there are 3"));
    assert!(refused(Graph::Matrix(matrix), 2).contains("nobody sends"));
    let sequence = Sequence::new(&fine, &Graph::AllToAll, 3, BYTES_MAX, 0).unwrap();
    let mut memory = Memory::all(1).remove(0);
    let error = run(&mut memory, &sequence, 0).unwrap_err().to_string();
    assert!(error.contains("is 1, and must be 3"), "{error}");
}
