//! What kernels send against what the reference sends.
//!
//! Model:   the reference's messages were counted at its calls of MPI: point-to-point sends and collectives apart, and so they are
//!          here. Collectives are made by what is below the counter, as by a library: once for each rank, with what it puts in. A
//!          class's number of steps is reached from runs of one and of two, since every step sends the same; of class S and the
//!          kernels without steps all is run.
//! Source:  `data/npb-messages.toml`.
//! Units:   messages and bytes of the timed part, all ranks together.

use std::fmt::Write;
use std::path::Path;

use serde::Deserialize;
use sonde_message::collectives::{Choice, Communicator};
use sonde_message::counted::Counted;
use sonde_message::native::Memory;
use sonde_message::{
    Call, Capabilities, Comm, Completion, Messenger, Op, Request, Result, Source, Status, Tag,
    Tagged,
};
use sonde_workload::npb::{Class, Kernel, Problem, launch};

const REFERENCE: &str = include_str!("../data/npb-messages.toml");
/// Rows of so many ranks are in the guide.
const SHOWN: usize = 4;

#[derive(Deserialize)]
struct Part {
    section: String,
    rule: String,
    counts: Vec<Counts>,
}

/// As the file has it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Counts {
    class: String,
    ranks: usize,
    messages: u64,
    bytes: u64,
    to_itself: u64,
    bytes_to_itself: u64,
    calls: u64,
    put_in: u64,
}

/// Makes collectives of its own, so that who counts above it sees the call and not its messages.
struct Library<M>(M);

impl<M: Messenger> Messenger for Library<M> {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }
    fn rank(&self, comm: Comm) -> usize {
        self.0.rank(comm)
    }
    fn size(&self, comm: Comm) -> usize {
        self.0.size(comm)
    }
    fn send(&mut self, comm: Comm, to: usize, tag: Tag, payload: &[u8]) -> Result<()> {
        self.0.send(comm, to, tag, payload)
    }
    fn recv(&mut self, comm: Comm, from: Source, tag: Tagged, room: &mut [u8]) -> Result<Status> {
        self.0.recv(comm, from, tag, room)
    }
    fn exchange(&mut self, comm: Comm, ops: &mut [Op<'_>], statuses: &mut [Status]) -> Result<()> {
        self.0.exchange(comm, ops, statuses)
    }
    fn isend(&mut self, comm: Comm, to: usize, tag: Tag, payload: Vec<u8>) -> Result<Request> {
        self.0.isend(comm, to, tag, payload)
    }
    fn irecv(&mut self, comm: Comm, from: Source, tag: Tagged, room: Vec<u8>) -> Result<Request> {
        self.0.irecv(comm, from, tag, room)
    }
    fn test(&mut self, request: Request) -> Result<std::result::Result<Completion, Request>> {
        self.0.test(request)
    }
    fn wait(&mut self, request: Request) -> Result<Completion> {
        self.0.wait(request)
    }
    fn iprobe(&mut self, comm: Comm, from: Source, tag: Tagged) -> Result<Option<Status>> {
        self.0.iprobe(comm, from, tag)
    }
    fn split(&mut self, comm: Comm, colour: Option<u32>, key: i32) -> Result<Option<Comm>> {
        self.0.split(comm, colour, key)
    }
    fn collective(&mut self, comm: Comm, call: &mut Call<'_>) -> Result<bool> {
        Communicator::new(&mut self.0, comm, Choice::default()).call(call)?;
        Ok(true)
    }
    fn progress(&mut self) -> Result<()> {
        self.0.progress()
    }
    fn facts(&self) -> Result<sonde_measure::Library> {
        self.0.facts()
    }
    fn abort(&mut self, why: &str) {
        self.0.abort(why);
    }
    fn finish(&mut self) -> Result<()> {
        self.0.finish()
    }
}

/// With so many steps, where a kernel has steps.
fn with_steps(problem: Problem, steps: usize) -> Option<Problem> {
    let mut problem = problem;
    match &mut problem {
        Problem::Ep(_) | Problem::Is(_) => return None,
        Problem::Cg(size) => size.steps = steps,
        Problem::Mg(size) => size.cycles = steps,
        Problem::Ft(size) => size.iterations = steps,
        Problem::Lu(size) => size.steps = steps,
        Problem::Sp(size) => size.steps = steps,
        Problem::Bt(size) => size.steps = steps,
    }
    Some(problem)
}

/// Messages, bytes, those to itself, collectives, what was put in: of a run, all ranks together.
fn counted(problem: &Problem, ranks: usize) -> [u64; 6] {
    let all = Memory::run(ranks, |messenger| {
        let mut counted = Counted::new(Library(messenger));
        let mut world = Communicator::new(&mut counted, Comm::WORLD, Choice::default());
        problem.run(&mut world).expect("a run");
        counted.profile()
    });
    let mut sum = [0; 6];
    for profile in &all {
        let phases = profile.phases.iter();
        for phase in phases.filter(|phase| launch::is_timed(&phase.name)) {
            sum[0] += phase.sent.total.messages;
            sum[1] += phase.sent.total.bytes;
            for flow in &phase.flows {
                if flow.sent && flow.rank == profile.rank {
                    sum[2] += flow.total.messages;
                    sum[3] += flow.total.bytes;
                }
            }
            for made in &phase.collectives {
                sum[4] += made.count;
                sum[5] += made.bytes;
            }
        }
    }
    sum
}

/// Of a class's whole number of steps.
fn ours(kernel: Kernel, class: Class, ranks: usize) -> Counts {
    let problem = match kernel {
        // How many pairs there are changes nothing of it.
        Kernel::Ep => Problem::of(kernel, Class::S),
        _ => Problem::of(kernel, class),
    };
    let problem = problem.expect("all are there");
    let (one, two) = (with_steps(problem, 1), with_steps(problem, 2));
    let sum = match (one, two) {
        (Some(one), Some(two)) if class != Class::S => {
            let (one, two) = (counted(&one, ranks), counted(&two, ranks));
            let more = problem.iterations() - 1;
            std::array::from_fn(|i| one[i] + more * (two[i] - one[i]))
        }
        _ => counted(&problem, ranks),
    };
    let [messages, bytes, to_itself, bytes_to_itself, calls, put_in] = sum;
    Counts {
        class: class.name().into(),
        ranks,
        messages,
        bytes,
        to_itself,
        bytes_to_itself,
        calls,
        put_in,
    }
}

fn reference(kernel: Kernel) -> Part {
    let mut parts: toml::Table = REFERENCE.parse().expect("TOML");
    let part = parts.remove(kernel.name()).expect("all eight are there");
    part.try_into().expect("a kernel's counts")
}

/// A row of the guide's table.
fn row(kernel: Kernel, theirs: &Counts, ours: &Counts) -> String {
    let ratio = |ours: u64, theirs: u64| match theirs {
        0 => "–".to_string(),
        _ => format!("{:.2}", ours as f64 / theirs as f64),
    };
    let mut row = format!("| `{kernel}` | {} | {} ", ours.class, ours.ranks);
    for (theirs, ours) in [
        (theirs.messages, ours.messages),
        (theirs.bytes, ours.bytes),
        (theirs.calls, ours.calls),
        (theirs.put_in, ours.put_in),
    ] {
        write!(row, "| {theirs} | {ours} | {} ", ratio(ours, theirs)).expect("a text");
    }
    row + "|"
}

#[test]
fn no_more_is_sent_than_by_the_reference() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results-kernels.md");
    let guide = std::fs::read_to_string(guide).expect("the guide");
    let (mut more, mut missing) = (Vec::new(), Vec::new());
    for kernel in Kernel::ALL {
        let Part {
            section,
            rule,
            counts,
        } = reference(kernel);
        println!("{kernel}: section {section}: {rule}");
        assert!(counts.len() >= 6, "{kernel}");
        for theirs in counts {
            let class: Class = theirs.class.parse().expect("a class");
            let ours = ours(kernel, class, theirs.ranks);
            let row = row(kernel, &theirs, &ours);
            println!("{row}");
            // Without those that a rank of the reference sends to itself.
            let pairs = [
                (ours.messages, theirs.messages - theirs.to_itself),
                (ours.bytes, theirs.bytes - theirs.bytes_to_itself),
                (ours.calls, theirs.calls),
                (ours.put_in, theirs.put_in),
                (ours.to_itself, 0),
            ];
            if pairs.iter().any(|(ours, theirs)| ours > theirs) {
                more.push(row.clone());
            }
            if theirs.ranks == SHOWN && !guide.contains(&row) {
                missing.push(row);
            }
        }
    }
    assert!(more.is_empty(), "more than the reference: {more:#?}");
    assert!(
        missing.is_empty(),
        "docs/results-kernels.md has not the rows\n{}",
        missing.join("\n")
    );
}
