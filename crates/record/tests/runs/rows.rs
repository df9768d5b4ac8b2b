//! The rows of runs: populations, order, and what is said of what is missing.

use crate::sample::{Shown, document};
use crate::sample::{cell, failed, full, launch, measurement, planned, without};
use sonde_measure::{
    CellRecord, Doubt, EventRecord, Interference, LaunchRecord, Measurement, Number, Phase,
    Quantity, ResultRow, Run, RunState, Status, Step, VerdictStatus,
};
use sonde_record::Document;

fn reason(row: &ResultRow) -> &str {
    row.reason.as_deref().unwrap_or_default()
}

/// A run of one latency cell with these launches.
fn latencies(planned_launches: u64, launches: impl Fn(&CellRecord) -> Vec<LaunchRecord>) -> Run {
    let cell = cell("latency", 1, planned_launches);
    let mut run = planned("r", vec![cell.clone()]);
    run.launches = launches(&cell);
    run
}

fn latency(cell: &CellRecord, index: u64) -> LaunchRecord {
    let samples = [10 * (index + 1), 10 * (index + 1) + 1];
    launch(
        cell,
        index,
        vec![measurement(Quantity::LatencyNs, Phase::Warm, samples)],
    )
}

#[test]
fn one_row_for_each_population() {
    let run = full("r");
    let rows = run.rows();
    let of = |probe: &str| {
        rows.iter()
            .filter(|row| row.probe == probe)
            .collect::<Vec<_>>()
    };
    let latency = of("latency");
    assert_eq!(latency.len(), 3);
    assert_eq!(
        (latency[0].phase, latency[0].samples),
        (Some(Phase::Cold), 2)
    );
    assert_eq!(
        (latency[1].phase, latency[1].samples),
        (Some(Phase::Warm), 24_000)
    );
    assert!(latency[1].p999.is_some() && latency[0].p99.is_none());
    assert_eq!(latency[0].max, Some(Number(300_001.0)));
    let throughput = of("throughput");
    let quantities: Vec<_> = throughput.iter().map(|row| row.quantity).collect();
    assert_eq!(
        quantities,
        [
            Quantity::ThroughputBps,
            Quantity::CpuSrcNsPerByte,
            Quantity::BusyShare
        ]
    );
    let medians: Vec<_> = throughput.iter().map(|row| row.p50.unwrap().0).collect();
    assert_eq!(medians, [941_000_000.0, 1.25, 0.999_999]);
    assert!(
        throughput
            .iter()
            .all(|row| row.mode.as_deref() == Some("stream"))
    );
    // Everything is JSON, and comes back.
    let document = document(&run);
    let text = serde_json::to_string(&document).unwrap();
    assert_eq!(
        serde_json::from_str::<Document<Shown>>(&text).unwrap(),
        document
    );
    assert_eq!(
        (document.run.as_deref(), document.warnings.len()),
        (Some("r"), 1)
    );
    assert!(
        text.contains("\"p50\":941000000,") && text.contains("\"p50\":1.25,"),
        "{text}"
    );
}

#[test]
fn steps_come_in_their_order() {
    let cell = cell("startup", 8, 1);
    let step = |step| Measurement {
        touched: None,
        step,
        ..measurement(Quantity::StartupNs, Phase::Cold, [5])
    };
    let shuffled = [
        Some(Step::Idle),
        Some(Step::First),
        Some(Step::Neighbour),
        None,
        Some(Step::Second),
        Some(Step::Vc),
        Some(Step::Connect),
    ];
    let mut run = planned("r", vec![cell.clone()]);
    run.launches = vec![launch(&cell, 0, shuffled.map(step).to_vec())];
    let steps: Vec<_> = run.rows().iter().map(|row| row.step).collect();
    let wanted = [
        Step::Neighbour,
        Step::Vc,
        Step::Connect,
        Step::First,
        Step::Second,
        Step::Idle,
    ];
    assert_eq!(steps[0], None);
    assert_eq!(steps[1..], wanted.map(Some));
}

#[test]
fn several_pairs_have_no_name() {
    let one = latencies(2, |cell| vec![latency(cell, 0), latency(cell, 1)]);
    let row = &one.rows()[0];
    assert_eq!(
        (row.src.as_deref(), row.dst.as_deref()),
        (Some("h1"), Some("h2"))
    );
    let mut several = one.clone();
    several.launches[1].dst = "h3".into();
    let row = &several.rows()[0];
    assert_eq!((&row.src, &row.dst), (&None, &None));
    // A failed launch between others does not count.
    several.launches[1].results[0].failure = Some("lost".into());
    assert_eq!(several.rows()[0].dst.as_deref(), Some("h2"));
}

#[test]
fn too_few_launches_are_told() {
    let two = latencies(2, |cell| vec![latency(cell, 0), latency(cell, 1)]);
    let row = &two.rows()[0];
    assert_eq!(
        (row.status, row.launches, row.ci95_low),
        (Status::Measured, 2, None)
    );
    assert_eq!(
        reason(row),
        "2 repetitions: a confidence interval needs six"
    );
    let six = latencies(6, |cell| (0..6).map(|index| latency(cell, index)).collect());
    let row = &six.rows()[0];
    assert_eq!(row.reason, None);
    assert_eq!(
        (row.ci95_low, row.ci95_high),
        (Some(Number(10.0)), Some(Number(60.0)))
    );
    assert_eq!((row.min, row.max), (Some(Number(10.0)), Some(Number(61.0))));
    // Seven of nine: one failed, one was not made.
    let mut seven = latencies(9, |cell| {
        let made = (0..7).map(|index| latency(cell, index));
        made.chain([failed(cell, 7, "h2 is gone: no answer")])
            .collect()
    });
    seven.head.state = RunState::Partial;
    let row = &seven.rows()[0];
    assert!(row.ci95_low.is_some() && row.launches == 7);
    assert_eq!(
        reason(row),
        "9 were planned; 1 failed: h2 is gone: no answer; 1 not made: the run ended before it"
    );
    // A failed launch's samples are not in the row.
    let mut half = two.clone();
    half.launches[1].results[0].failure = Some("bytes came back changed".into());
    let row = &half.rows()[0];
    assert_eq!(
        (row.launches, row.samples, row.max),
        (1, 2, Some(Number(11.0)))
    );
    assert!(
        reason(row).starts_with("1 repetition: a confidence interval needs six; 2 were planned"),
        "{row:?}"
    );
}

#[test]
fn strangers_make_a_row_uncertain() {
    let mut run = latencies(6, |cell| (0..6).map(|index| latency(cell, index)).collect());
    assert_eq!(run.rows()[0].reason, None);
    for (launch, count) in run.launches.iter_mut().zip([0, 900, 1]) {
        launch.interference.push(Interference {
            host: "h2".into(),
            strangers: count,
            ..Interference::default()
        });
    }
    let row = &run.rows()[0];
    assert_eq!(row.status, Status::Measured);
    assert_eq!(
        reason(row),
        "uncertain: unauthenticated peers came to a data port in 2 repetitions"
    );
    // Of a repetition that is not in the row nothing is said.
    run.launches[1].results[0].failure = Some("lost".into());
    assert!(reason(&run.rows()[0]).ends_with("came to a data port in 1 repetition"));
}

#[test]
fn what_was_set_aside_is_counted_and_in_no_figure() {
    let all = [&[0_u64, 0, 1][..], &[5, 5, 4, 4, 3, 3, 2]].concat();
    let set_aside = |count: usize| {
        let mut run = latencies(6, |cell| (0..6).map(|index| latency(cell, index)).collect());
        let alone = run.rows();
        for index in &all[..count] {
            let mut aside = latency(&run.cells[0].clone(), 1_000 + index);
            aside.results[0].index = *index;
            aside.set_aside = true;
            run.launches.insert(0, aside);
        }
        (alone[0].clone(), run.rows().swap_remove(0))
    };
    let (alone, row) = set_aside(6);
    assert_eq!((row.launches, row.set_aside, alone.set_aside), (6, 6, 0));
    assert_eq!(reason(&row), "6 set aside for a disturbance and made again");
    let wanted = ResultRow {
        set_aside: 6,
        reason: row.reason.clone(),
        ..alone
    };
    assert_eq!(row, wanted);
    // More than half of all.
    let (_, row) = set_aside(7);
    assert!(row.doubts.contains(&Doubt::SetAside), "{row:?}");
    let why = row.why.unwrap();
    assert!(why.contains("7 of 13 repetitions were set aside"), "{why}");
}

#[test]
fn what_was_not_had_says_why() {
    let rows = full("r").rows();
    let step = |step| rows.iter().find(|row| row.step == Some(step)).unwrap();
    let neighbour = step(Step::Neighbour);
    assert_eq!((neighbour.status, neighbour.samples), (Status::Skipped, 0));
    assert_eq!(
        reason(neighbour),
        "may not flush the neighbour table: run as root"
    );
    assert_eq!((neighbour.p50, neighbour.verdict.as_ref()), (None, None));
    assert_eq!(step(Step::First).status, Status::Measured);
    // What the cell is about was tried.
    let lost = latencies(2, |cell| {
        let empty = Measurement {
            touched: None,
            step: None,
            quantity: Quantity::LatencyNs,
            phase: Phase::Warm,
            ..without(Step::First, "all were lost")
        };
        vec![
            launch(cell, 0, vec![empty.clone()]),
            launch(cell, 1, vec![empty]),
        ]
    });
    let row = &lost.rows()[0];
    assert_eq!((row.status, reason(row)), (Status::Failed, "all were lost"));
    // In one launch of two.
    let once = latencies(2, |cell| {
        let empty = Measurement {
            touched: None,
            step: None,
            quantity: Quantity::LatencyNs,
            phase: Phase::Warm,
            ..without(Step::First, "all were lost")
        };
        vec![latency(cell, 0), launch(cell, 1, vec![empty])]
    });
    let row = &once.rows()[0];
    assert_eq!((row.status, row.launches), (Status::Measured, 1));
    assert!(
        reason(row).ends_with("2 were planned; all were lost"),
        "{row:?}"
    );
}

#[test]
fn nothing_planned_is_left_out() {
    let run = full("r");
    let rows = run.rows();
    for cell in &run.cells {
        assert!(rows.iter().any(|row| row.cell == cell.id), "{cell:?}");
    }
    let skipped = rows.iter().find(|row| row.size_bytes == Some(64)).unwrap();
    assert_eq!(
        (skipped.status, reason(skipped)),
        (Status::Skipped, "no ATM here")
    );
    // Nothing was tried: the row of the probe's main quantity.
    for (probe, quantity, phase) in [
        ("latency", Quantity::LatencyNs, Phase::Warm),
        ("startup", Quantity::StartupNs, Phase::Cold),
        ("throughput", Quantity::ThroughputBps, Phase::Warm),
    ] {
        let mut run = planned("r", vec![cell(probe, 1, 6)]);
        let rows = run.rows();
        assert_eq!(rows.len(), 1);
        assert_eq!(
            (rows[0].status, rows[0].quantity, rows[0].phase),
            (Status::Failed, quantity, Some(phase))
        );
        assert!(
            reason(&rows[0]).starts_with("not measured: the run was not ended"),
            "{rows:?}"
        );
        run.head.state = RunState::Partial;
        run.events.push(EventRecord {
            at_unix_ns: 9,
            kind: "interrupted".into(),
            text: "a signal came".into(),
        });
        assert_eq!(reason(&run.rows()[0]), "not measured: a signal came");
        // It was resumed, and then ended for another reason: that is why it is not measured.
        run.events.push(EventRecord {
            at_unix_ns: 10,
            kind: "budget".into(),
            text: "the budget was used up".into(),
        });
        assert_eq!(
            reason(&run.rows()[0]),
            "not measured: the budget was used up"
        );
    }
    // All failed, for two causes.
    let all = latencies(3, |cell| {
        vec![
            failed(cell, 0, "a"),
            failed(cell, 1, "b"),
            failed(cell, 2, "a"),
        ]
    });
    let row = &all.rows()[0];
    assert_eq!(
        (row.status, reason(row), row.launches),
        (Status::Failed, "3 failed: a; b", 0)
    );
}

#[test]
fn verdicts_are_of_all_launches() {
    let mut run = latencies(2, |cell| vec![latency(cell, 0), latency(cell, 1)]);
    let verdict = run.rows()[0].verdict.clone().unwrap();
    assert_eq!(
        (verdict.status, verdict.deliveries, verdict.late),
        (VerdictStatus::Passed, 6_000, 2)
    );
    run.launches[1].verdict.as_mut().unwrap().attachment_losses = 4;
    let verdict = run.rows()[0].verdict.clone().unwrap();
    assert_eq!(
        (verdict.status, verdict.attachment_losses),
        (VerdictStatus::Failed, 4)
    );
    run.launches
        .iter_mut()
        .for_each(|launch| launch.verdict = None);
    assert_eq!(run.rows()[0].verdict, None);
}

#[test]
fn missing_launches() {
    let run = full("r");
    let throughput = run.cells[2].id.clone();
    assert_eq!(run.missing(), [(throughput.clone(), 1)]);
    let mut less = run.clone();
    less.launches.remove(0);
    assert_eq!(
        less.missing(),
        [(run.cells[0].id.clone(), 0), (throughput, 1)]
    );
    let mut all = run.clone();
    all.retain_results(|_, result| result.failure.is_none());
    all.launches.push(launch(&run.cells[2], 1, Vec::new()));
    assert_eq!(all.missing(), []);
}
