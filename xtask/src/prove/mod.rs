//! `cargo xtask prove`: measures what this release promises, and writes it down as Markdown.
//!
//! Model:   a section is a promise with its tables, the command that gave them, and what was not met, in words. Every figure
//!          stands beside the model or the limit of the same run. A section that cannot be measured counts as not met.
//!          The results of real programs in labs of the built command; nothing is taken from an earlier run.
//! Checked: `the_part_between_the_marks_is_replaced`, and the tests of each section's reading.

mod again;
mod anatomy;
mod blast;
mod cold;
mod delay;
mod floor;
mod forward;
mod gate;
mod hippi;
mod hosts;
mod kernels;
mod lab;
mod library;
mod load;
mod netpipe;
mod networks;
mod own;
mod parity;
mod peers;
mod rings;
mod rounds;
mod rtt;
mod shapers;
mod shm;
mod svc;
mod table;
mod tcp;
mod transports;
mod tune;
mod verdict;

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::prove::table::Table;

/// Where the results go with `--write`: each section between marks of its own.
const DOCUMENT: &str = "docs/performance.md";
/// Before it, sections that have no marks yet are put.
const END: &str = "<!-- prove:end -->";
/// Both ways in which hosts can be attached.
const ATTACHMENTS: [&str; 2] = ["tap", "veth"];
/// The networks of the catalogue that have a rate.
const RATED: [&str; 4] = ["ethernet-100", "ethernet-1g", "atm-oc3c", "wan-100m-20ms"];

/// The result of one section.
struct Proof {
    /// What was run, in a form that can be run again.
    command: String,
    /// What the columns mean and where the bound comes from, in a sentence or two.
    note: String,
    tables: Vec<Table>,
    /// What was not met.
    unmet: Vec<String>,
}

/// Measures one section.
type Measure = fn(&Ground) -> Result<Proof>;

/// In the order in which they run; name, title, measure.
const SECTIONS: [(&str, &str, Measure); 25] = [
    (
        "tcp",
        "A stream reaches what the model expects",
        tcp::measure,
    ),
    (
        "rtt",
        "A round trip costs what the network adds",
        rtt::measure,
    ),
    ("blast", "A blast loses nothing", blast::measure),
    (
        "gate",
        "The gate never stalls and never loses",
        gate::measure,
    ),
    (
        "svc",
        "A switched circuit costs its set-up once",
        svc::measure,
    ),
    (
        "parity",
        "The virtual clock repeats the real one",
        parity::measure,
    ),
    ("hosts", "Sixty-four hosts come and go", hosts::measure),
    (
        "forward",
        "The switch keeps up with a bare forwarder",
        forward::measure,
    ),
    (
        "peers",
        "sonde measures what iperf3 and sockperf measure",
        peers::measure,
    ),
    ("cold", "First, second and median are apart", cold::measure),
    (
        "again",
        "An interval holds the median as often as it says",
        again::measure,
    ),
    (
        "networks",
        "Every network of the catalogue carries what the model expects",
        networks::measure,
    ),
    (
        "delay",
        "A delay is kept to 50 µs at the 99th percentile",
        delay::measure,
    ),
    (
        "shapers",
        "The lab keeps its rate without being told of the line, which htb and tbf do not",
        shapers::measure,
    ),
    ("load", "Queueing under load is the model's", load::measure),
    (
        "transports",
        "Every way of moving bytes, beside the tools known for it",
        transports::measure,
    ),
    (
        "shm",
        "Shared memory costs little more than its cache lines",
        shm::measure,
    ),
    (
        "anatomy",
        "Frames beside UDP and TCP, and which part makes the difference",
        anatomy::measure,
    ),
    (
        "tune",
        "A window that limits is found, and lifting it brings what was foretold",
        tune::measure,
    ),
    (
        "verdict",
        "Planted faults are named, healthy hosts are not",
        verdict::measure,
    ),
    (
        "hippi",
        "The HIPPI study's windows and buffers",
        hippi::measure,
    ),
    (
        "rings",
        "Rings of two to ten nodes carry more with each node",
        rings::measure,
    ),
    (
        "netpipe",
        "sonde measures what NetPIPE measures above each library",
        netpipe::measure,
    ),
    (
        "library",
        "Libraries beside sockets, and PVM's direct route below its default one",
        library::measure,
    ),
    (
        "kernels",
        "The eight kernels beside the benchmark's own programs",
        kernels::measure,
    ),
];

/// What all sections stand on.
struct Ground {
    root: PathBuf,
    /// The built command.
    sonde: PathBuf,
    /// For ledgers and reports; inside target.
    scratch: PathBuf,
    /// How often a thing is repeated.
    runs: usize,
    /// Where the NAS parallel benchmarks' own programs are.
    reference: Option<PathBuf>,
}

struct Options {
    sections: Vec<String>,
    runs: usize,
    reference: Option<PathBuf>,
    write: bool,
}

/// `cargo xtask prove [SECTION…] [--runs N] [--reference DIR] [--write]`; exit code 1 where a promise was not met.
pub fn run(root: &Path, arguments: &[String]) -> Result<ExitCode> {
    let options = options(arguments)?;
    let scratch = root.join("target/prove");
    std::fs::create_dir_all(&scratch).with_context(|| format!("making {}", scratch.display()))?;
    let ground = Ground {
        sonde: built_command(root)?,
        root: root.to_path_buf(),
        scratch,
        runs: options.runs,
        reference: options.reference,
    };
    let machine = ground.machine();
    let mut text = machine.clone();
    let (mut unmet, mut written) = (Vec::new(), Vec::new());
    for (name, title, measure) in SECTIONS {
        if !options.sections.is_empty() && !options.sections.iter().any(|wanted| wanted == name) {
            continue;
        }
        eprintln!("prove {name}: {title}");
        let told = match measure(&ground) {
            Ok(proof) => {
                unmet.extend(proof.unmet.iter().map(|what| format!("{name}: {what}")));
                proof.text()
            }
            Err(error) => {
                unmet.push(format!("{name}: could not be measured: {error:#}"));
                format!("**Could not be measured:** {error:#}.\n")
            }
        };
        text.push_str(&format!("\n### {title}\n\n{told}"));
        written.push((name, format!("### {title}\n\n{machine}\n{told}")));
    }
    text.push_str(&summary(&unmet));
    println!("{text}");
    if options.write {
        write(&root.join(DOCUMENT), &written)?;
    }
    Ok(ExitCode::from(u8::from(!unmet.is_empty())))
}

fn options(arguments: &[String]) -> Result<Options> {
    let mut options = Options {
        sections: Vec::new(),
        runs: 10,
        reference: None,
        write: false,
    };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--write" => options.write = true,
            "--runs" => {
                let runs = words.next().and_then(|text| text.parse().ok());
                options.runs = runs
                    .filter(|runs| *runs > 0)
                    .context("--runs needs a number above 0")?;
            }
            "--reference" => {
                let dir = words.next().map(std::fs::canonicalize);
                let dir = dir.context("--reference needs a directory with ep.A.x, cg.A.x, …")?;
                options.reference = Some(dir.context("--reference: opening the directory")?);
            }
            name if SECTIONS.iter().any(|section| section.0 == name) => {
                options.sections.push(name.to_owned());
            }
            other => {
                let names: Vec<_> = SECTIONS.iter().map(|section| section.0).collect();
                bail!(
                    "there is no section `{other}`; there are {}",
                    names.join(", ")
                );
            }
        }
    }
    Ok(options)
}

/// The newer one of the static and the plain build.
fn built_command(root: &Path) -> Result<PathBuf> {
    let places = ["target/static/sonde", "target/release/sonde"].map(|place| root.join(place));
    let built = |path: &PathBuf| path.metadata().and_then(|data| data.modified()).ok();
    let newest = places.into_iter().filter(|path| built(path).is_some());
    newest
        .max_by_key(built)
        .context("there is no built command; build it with `cargo build --release`")
}

impl Ground {
    /// The machine, as far as it bears on the figures.
    fn machine(&self) -> String {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let release = read("/proc/sys/kernel/osrelease");
        // The version alone; what follows the first dash names a build.
        let kernel = release.split('-').next().unwrap_or_default();
        let processors = read("/proc/cpuinfo");
        let model = processors
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
            .map_or("CPUs", |(_, name)| name);
        let cpus = processors
            .lines()
            .filter(|line| line.starts_with("processor"));
        let load = load_average().map_or("unknown".to_owned(), |load| format!("{load:.2}"));
        let place = self.sonde.strip_prefix(&self.root).unwrap_or(&self.sonde);
        format!(
            "Measured with `{}` on Linux {}, {} × {model}; load average {load} before the first section.\n",
            place.display(),
            kernel.trim(),
            cpus.count(),
        )
    }

    /// The command as a reader would type it.
    fn retry(section: &str) -> String {
        format!("cargo xtask prove {section}")
    }
}

impl Proof {
    fn text(&self) -> String {
        let mut text = format!("{}\n\n", self.note);
        for table in &self.tables {
            text.push_str(&format!("{table}\n"));
        }
        text.push_str(&format!("    {}\n", self.command));
        if !self.unmet.is_empty() {
            text.push_str("\n**Not met:**\n\n");
            for what in &self.unmet {
                text.push_str(&format!("- {what}\n"));
            }
        }
        text
    }
}

fn summary(unmet: &[String]) -> String {
    if unmet.is_empty() {
        return "\nEvery promise above was met.\n".to_owned();
    }
    let mut text = format!("\n**{} not met:**\n\n", unmet.len());
    for what in unmet {
        text.push_str(&format!("- {what}\n"));
    }
    text
}

fn write(path: &Path, sections: &[(&str, String)]) -> Result<()> {
    let mut document =
        std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    for (name, text) in sections {
        document = replace(&document, name, text).with_context(|| {
            format!(
                "{} has neither the marks of `{name}` nor a `{END}` before which they could stand",
                path.display()
            )
        })?;
    }
    std::fs::write(path, document).with_context(|| format!("writing {}", path.display()))?;
    eprintln!("prove: written into {}", path.display());
    Ok(())
}

/// The document with the part between the marks of a section replaced, and nothing else touched. A section that has no marks
/// yet gets them before the end of all; none without that either.
fn replace(document: &str, name: &str, text: &str) -> Option<String> {
    let (begin, end) = (mark(name, "begin"), mark(name, "end"));
    let block = format!("{begin}\n\n{}\n\n{end}", text.trim());
    if let Some((before, rest)) = document.split_once(&begin) {
        let (_, after) = rest.split_once(&end)?;
        return Some(format!("{before}{block}{after}"));
    }
    let (before, after) = document.split_once(END)?;
    Some(format!("{before}{block}\n\n{END}{after}"))
}

fn mark(name: &str, which: &str) -> String {
    format!("<!-- prove:{name}:{which} -->")
}

/// How many wanted a CPU over the last minute.
fn load_average() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// The one in the middle; of an even number the mean of the two there.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let (low, high) = ((values.len() - 1) / 2, values.len() / 2);
    (values[low] + values[high]) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_between_the_marks_is_replaced() {
        let (begin, end) = (mark("tcp", "begin"), mark("tcp", "end"));
        let document = format!("# Head\n{begin}\nold\n{end}\nby hand\n{END}\ntail\n");
        let wanted = format!("# Head\n{begin}\n\nnew\n\n{end}\nby hand\n{END}\ntail\n");
        assert_eq!(replace(&document, "tcp", "new\n"), Some(wanted.clone()));
        assert_eq!(replace(&wanted, "tcp", "new"), Some(wanted.clone()));
        let (first, last) = (mark("rtt", "begin"), mark("rtt", "end"));
        let added = replace(&wanted, "rtt", "more").unwrap();
        let tail = format!("by hand\n{first}\n\nmore\n\n{last}\n\n{END}\ntail\n");
        assert!(added.ends_with(&tail), "{added}");
        assert_eq!(replace("no marks", "tcp", "new"), None);
        assert_eq!(replace(&format!("{end}{begin}"), "tcp", "new"), None);
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert!((median(vec![3.0, 1.0, 2.0]) - 2.0).abs() < 1e-9);
        assert!((median(vec![4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < 1e-9);
    }

    #[test]
    fn sections_and_options_are_read() {
        let words =
            |text: &str| -> Vec<String> { text.split_whitespace().map(str::to_owned).collect() };
        let read = options(&words("tcp rtt --runs 3 --write")).unwrap();
        assert_eq!(
            (read.sections.join(" "), read.runs, read.write),
            ("tcp rtt".to_owned(), 3, true)
        );
        let with = options(&words("kernels --reference /")).unwrap();
        assert_eq!((read.reference, with.reference), (None, Some("/".into())));
        let wrong = ["tpc", "--runs", "--runs 0", "--runs x"];
        for wrong in [&wrong[..], &["--reference", "--reference /nowhere"]].concat() {
            assert!(options(&words(wrong)).is_err(), "{wrong}");
        }
    }
}
