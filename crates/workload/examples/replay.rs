//! The messages of a kernel of the UPC study among ranks of this process, without what it computes.
//!
//! Model:   `replay KERNEL [aged=FACTOR] [computing=NS] [trace=FILE.json] [table=FILE.csv]`: four ranks that are threads over the in-process engine;
//!          what was asked for beside what was counted, and what each rank did when.

use std::fs::File;
use std::io::BufWriter;
use std::process::ExitCode;

use sonde_message::aged::Aged;
use sonde_message::counted::Counted;
use sonde_message::native::Memory;
use sonde_message::timeline::{Clocks, Timeline, Trace};
use sonde_units::Ratio;
use sonde_workload::npb::Kernel;
use sonde_workload::replay::{BYTES_MAX, Sequence, run, upc};

const USAGE: &str = "replay KERNEL [aged=FACTOR] [computing=NS] [trace=FILE.json] [table=FILE.csv]";
/// Events of a rank.
const ROOM: usize = 1 << 20;

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match replay(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn replay(words: &[String]) -> Result<(), Failure> {
    let (kernel, options) = words.split_first().ok_or(USAGE)?;
    let kernel: Kernel = kernel.parse()?;
    let option = |name: &str| {
        let options = options.iter().filter_map(|word| word.split_once('='));
        let mut found = options.filter(move |(of, _)| *of == name);
        found.next().map(|(_, value)| value)
    };
    let factor: Ratio = option("aged").unwrap_or("1").parse()?;
    let computing_ns: u64 = option("computing").unwrap_or("0").parse()?;
    let known = upc::known(kernel).statistic;
    let (statistic, graph) = known.ok_or("the paper gives no messages of this kernel")?;
    let sequence = Sequence::new(&statistic, &graph, upc::RANKS, BYTES_MAX, 1)?;
    println!("asked for: {statistic:?}, {graph:?}");
    let ended = Memory::run(upc::RANKS, |messenger| -> sonde_message::Result<_> {
        let before = Clocks::read(messenger)?;
        let timeline = Timeline::new(Counted::new(&mut *messenger), ROOM);
        let mut aged = Aged::new(timeline, factor)?;
        let outcome = run(&mut aged, &sequence, computing_ns)?;
        let charges = aged.charges();
        let (recording, counted) = aged.into_inner().end();
        let profile = counted.profile();
        let trace = Trace::gather(messenger, recording, Some(&before))?;
        Ok((outcome, charges, profile, trace))
    });
    for (rank, one) in ended.into_iter().enumerate() {
        let (outcome, charges, profile, trace) = one?;
        println!("rank {rank}: {outcome:?} {charges:?}");
        for phase in profile.phases.iter().filter(|phase| phase.name == "replay") {
            println!("  sent {:?}, held {} ns", phase.sent, phase.busy_ns);
        }
        if let Some(trace) = trace {
            write(&trace, option("trace"), option("table"))?;
        }
    }
    Ok(())
}

fn write(trace: &Trace, json: Option<&str>, table: Option<&str>) -> Result<(), Failure> {
    if let Some(file) = json {
        trace.write_chrome(BufWriter::new(File::create(file)?))?;
    }
    if let Some(file) = table {
        trace.write_csv(BufWriter::new(File::create(file)?))?;
    }
    for (rank, one) in trace.ranks.iter().enumerate() {
        let (events, dropped) = (one.recording.events.len(), one.recording.dropped);
        println!(
            "rank {rank}: {events} events, {dropped} had no room, {:?}",
            one.clock
        );
    }
    Ok(())
}
