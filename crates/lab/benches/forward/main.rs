//! The lab's forwarding speed against a bare forwarder on the same attachment, and what a large lab costs.
//!
//! Model:   a blaster on h1 sends datagrams to h2 as fast as it can. What arrives at h2's interface is counted over a
//!          second, after the first 0.2 s, once through a loop of epoll, read and write between the same two interfaces (no
//!          model, no order, no lateness), once through the lab on the network `wire`. The two take turns; the ratio is
//!          that of the medians. A large lab is timed up and down, and its idle switch measured.
//! Units:   frames a second at h2's interface; CPU nanoseconds of the forwarding thread a frame; MB are 10^6 bytes.
//!
//! `cargo bench -p sonde-lab --bench forward -- [--pairs N] [--cpus one|split|free] [--only tap|veth] [forward|idle]`. Of all
//! programs it is this one that is started again for each part: forwarder, blaster, sink, and the lab's own.
#![forbid(unsafe_code)]

mod bare;
mod idle;
mod traffic;

use serde::{Deserialize, Serialize};
use sonde_lab::{Attachment, Config, CpuPlan, Exec, Lab, Profile};
use std::error::Error;
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Layer-3 bytes of a frame, which is the MTU too: a datagram of 64 bytes (with its headers 92), and a full one.
const MTUS: [u64; 2] = [92, 1_500];

/// Before a blast. The kernel takes the namespaces of the run before down in the background, and holds the lock meanwhile that
/// a change of a gate needs.
const SETTLE: Duration = Duration::from_millis(500);

/// One blast through one of the two.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Blast {
    /// Frames a second at h2's interface.
    arrived_per_s: u64,
    /// CPU time of the forwarder, in nanoseconds a frame.
    cpu_ns_per_frame: u64,
    /// Frames that were lost between a host and the lab's switch; the bare forwarder does not count its own.
    lost: u64,
}

struct Options {
    pairs: usize,
    cpus: CpuPlan,
    attachments: Vec<Attachment>,
    forward: bool,
    idle: bool,
}

fn main() -> ExitCode {
    // A part of a lab is a fresh start of this program; it must not have a second thread when it unshares.
    if let Some(code) = sonde_lab::entry() {
        return ExitCode::from(u8::try_from(code).unwrap_or(1));
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.first().map(String::as_str) {
        Some("blast") => traffic::blast(),
        Some("sink") => traffic::sink(),
        Some("hello") => traffic::hello(),
        Some("bare") => bare::run(&arguments[1..]),
        _ => options(&arguments).and_then(|options| compare(&options)),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("forward: {error}");
            ExitCode::FAILURE
        }
    }
}

fn options(arguments: &[String]) -> Outcome<Options> {
    let plan =
        |name: &str| -> Outcome<CpuPlan> { Ok(CpuPlan::named(name, &sonde_sys::cpu::online()?)?) };
    let mut options = Options {
        pairs: 5,
        cpus: plan("split")?,
        attachments: vec![Attachment::Tap, Attachment::Veth],
        forward: true,
        idle: true,
    };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
        match word.as_str() {
            "--pairs" => options.pairs = value()?.parse::<usize>()?.max(1),
            "--cpus" => options.cpus = plan(value()?)?,
            "--only" => options.attachments = vec![bare::attachment(value()?)?],
            "forward" => options.idle = false,
            "idle" => options.forward = false,
            // What cargo adds.
            "--bench" => {}
            other => {
                return Err(format!(
                    "`{other}` is not known; see the head of benches/forward/main.rs"
                )
                .into());
            }
        }
    }
    Ok(options)
}

fn compare(options: &Options) -> Outcome<()> {
    let usable = |attachment: &Attachment| match (attachment, bare::tap_obstacle()) {
        (Attachment::Tap, Some(obstacle)) => {
            println!("skipped: tap: {obstacle}");
            false
        }
        _ => true,
    };
    let attachments: Vec<Attachment> = options.attachments.iter().copied().filter(usable).collect();
    if options.forward {
        println!(
            "| attachment | frame | bare forwarder, frames/s | switch, frames/s | ratio | bare, CPU ns/frame | switch, CPU ns/frame | switch, lost at its ports |"
        );
        println!("|---|---|---|---|---|---|---|---|");
        for &attachment in &attachments {
            for mtu in MTUS {
                row(options, attachment, mtu)?;
            }
        }
        println!();
    }
    if options.idle {
        idle::run(&attachments, &options.cpus)?;
    }
    Ok(())
}

/// The pairs of one attachment and size.
fn row(options: &Options, attachment: Attachment, mtu: u64) -> Outcome<()> {
    let (mut bare, mut lab) = (Vec::new(), Vec::new());
    for pair in 1..=options.pairs {
        bare.push(bare::blast(attachment, mtu, &options.cpus)?);
        lab.push(through_the_lab(attachment, mtu, &options.cpus)?);
        let (b, l) = (bare[pair - 1].arrived_per_s, lab[pair - 1].arrived_per_s);
        eprintln!(
            "{} {mtu} B, pair {pair}: bare {b}, switch {l} frames/s",
            attachment.name()
        );
    }
    let median_of =
        |of: fn(&Blast) -> u64, blasts: &[Blast]| median(blasts.iter().map(of).collect());
    let pair = |of| (median_of(of, &bare), median_of(of, &lab));
    let (bare_arrived, lab_arrived) = pair(|blast| blast.arrived_per_s);
    let (bare_cpu, lab_cpu) = pair(|blast| blast.cpu_ns_per_frame);
    println!(
        "| {} | {mtu} B | {bare_arrived} | {lab_arrived} | {:.2} | {bare_cpu} | {lab_cpu} | {} |",
        attachment.name(),
        lab_arrived as f64 / bare_arrived as f64,
        lab.iter().map(|blast| blast.lost).sum::<u64>(),
    );
    Ok(())
}

fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values[values.len() / 2]
}

/// What is joined to what, and by which rules.
fn config(network: &str, hosts: u16, attachment: Attachment, cpus: &CpuPlan) -> Outcome<Config> {
    let folder = std::env::current_exe()?.parent().map(Path::to_path_buf);
    Ok(Config {
        site: sonde_link::SiteSpec::single(
            sonde_link::resolve(network, &|_| Err("not a name".into()))?,
            hosts,
        ),
        attachment,
        tun: PathBuf::from(bare::TUN),
        profile: Profile::MODERN,
        cpus: cpus.clone(),
        priority: sonde_lab::Priority::Auto,
        seed: 1,
        pcap: None,
        ledger: None,
        keep: folder.into_iter().collect(),
        user: sonde_lab::User {
            uid: 1_000,
            gid: 1_000,
            behind: (0, 0),
        },
        share: false,
        fail_over: false,
    })
}

/// This program with other arguments, in a host.
fn exec(arguments: &[String], cpus: &CpuPlan) -> Outcome<Exec> {
    let mut argv: Vec<OsString> = vec![std::env::current_exe()?.into()];
    argv.extend(arguments.iter().map(OsString::from));
    Ok(Exec {
        argv,
        environment: Vec::new(),
        directory: "/".into(),
        root: true,
        detached: false,
        terminal: None,
        cpus: cpus.hosts.clone(),
        keeps_priority: false,
    })
}

fn through_the_lab(attachment: Attachment, mtu: u64, cpus: &CpuPlan) -> Outcome<Blast> {
    let lab = Lab::start(
        &std::env::current_exe()?,
        &config(&format!("wire:mtu={mtu}"), 2, attachment, cpus)?,
        None,
        None,
    )?;
    let input = std::fs::File::open("/dev/null")?;
    let errors = std::io::stderr();
    let (ours, theirs) = UnixStream::pair()?;
    let (sink, _) = lab.exec(
        2,
        &exec(&["sink".into()], cpus)?,
        [input.as_fd(), theirs.as_fd(), errors.as_fd()],
    )?;
    drop(theirs);
    let mut lines = BufReader::new(ours).lines();
    let mut next = || lines.next().ok_or("the sink ended without a word");
    next()??;
    std::thread::sleep(SETTLE);
    lab.mark()?;
    let (blaster, _) = lab.exec(
        1,
        &exec(&traffic::blast_arguments(), cpus)?,
        [input.as_fd(), errors.as_fd(), errors.as_fd()],
    )?;
    let counted: traffic::Counted = serde_json::from_str(&next()??)?;
    let report = lab.report()?;
    sink.wait()?;
    drop(blaster);
    lab.stop()?;
    let blast = counted.blast(report.cpu_ns, report.deliveries);
    Ok(Blast {
        lost: report.attachment.total(),
        ..blast
    })
}
