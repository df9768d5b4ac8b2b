//! `sonde stage`: its options, lowered to a plan of moves and a job.

use super::contend::once;
use super::npb::{each_once, usual_path};
use super::options::Common;
use super::refused::Command;
use super::typed;
use crate::any_path::AnyPath;
use crate::contend::workload::Workload;
use crate::failure::Failure;
use crate::plan::{Mode, Plan, ProbeKind, ProbePlan};
use crate::shown::Form;
use crate::stage::share::{BUSY, Staging};
use clap::Args;
use sonde_measure::files::Service;
use sonde_units::{Bytes, Span};
use std::collections::BTreeMap;

/// Examples behind `--help`.
pub const EXAMPLES: &str = "Examples:
  sonde stage --network ethernet-100,atm-oc3c
  sonde stage lu:W --input 4MiB --output 1MiB --network ethernet-10
  sonde stage cg:A:ranks=8 --input 1GiB --testbed hosts:a,b --busy 4
  sonde stage --path nfs3,tcp --with store=memory --network ethernet-1g
  sonde stage --path ftp --with disk=16Mbit --with client-disk=16Mbit --network ethernet-100

A job reads its input from a server before it computes, and writes its output to one afterwards. Input and output are moved by each of the
values of --path, and the kernel is run, as repetitions of one run in shuffled order; the job's time is their sum. Servers are sonde's own, on the
other host; files are real ones in /tmp at both ends of FTP and at the NFS server (--with store=memory: none). tcp moves the same bytes as
one message between the two programs, without files. docs/staging.md says more.";

/// What `sonde stage` takes.
#[derive(Debug, Args)]
// Elsewhere `--output` is another name of `--out`.
#[command(mut_arg("out", |out| out.alias(None)))]
pub struct StageOptions {
    /// The job: a kernel as KERNEL[:CLASS][:ranks=N]: lu, cg:W, is:A:ranks=8; of class S and 4 ranks where nothing is said.
    #[arg(value_name = "KERNEL", default_value = "lu", value_parser = job)]
    job: ProbePlan,
    /// Size of the file that is moved to the job before it.
    #[arg(long, value_name = "BYTES", default_value = "16MiB", value_parser = typed::bytes)]
    input: u64,
    /// Size of the file that is moved from the job after it.
    #[arg(long, value_name = "BYTES", default_value = "4MiB", value_parser = typed::bytes)]
    output: u64,
    /// How files are moved: nfs2:udp, nfs2:tcp, nfs3:udp, nfs3:tcp, ftp, or tcp, a stream without files.
    #[arg(short = 'p', long = "path", value_delimiter = ',', default_value = "nfs2,ftp,tcp", value_parser = typed::path_name(), hide_possible_values = true)]
    paths: Vec<AnyPath>,
    /// The same on hosts on each of which N programs compute meanwhile, beside quiet ones; with several values, each of them.
    #[arg(long, value_name = "N", value_delimiter = ',')]
    busy: Vec<u32>,
    /// Other parameters of the services of files, as of `sonde probe files`.
    #[arg(long = "with", value_name = "KNOB=VALUE", value_parser = typed::knob)]
    knobs: Vec<(String, Vec<String>)>,
    /// Time for which each move is repeated, in each repetition; it is made once at least.
    #[arg(short = 't', long, value_name = "TIME", default_value = "1s", value_parser = Span::of_option)]
    budget: Span,
    #[command(flatten)]
    common: Common,
}

/// A kernel in the words of `sonde contend`, whose `npb:` may be left out.
fn job(text: &str) -> Result<ProbePlan, String> {
    let text = text.strip_prefix("npb:").unwrap_or(text);
    let refuse = |why: &str| {
        Err(format!(
            "`{text}` is not a job: {why}; write lu, cg:W or is:A:ranks=8"
        ))
    };
    match Workload::read(&format!("npb:{text}")) {
        Ok(Workload::Probe(probe)) if !probe.networks.is_empty() => {
            refuse("networks are named by `--network`")
        }
        Ok(Workload::Probe(probe)) => {
            let named = &probe.knobs["kernel"];
            if let Err(error) = named.iter().try_for_each(|kernel| {
                let known: Result<sonde_workload::npb::Kernel, _> = kernel.parse();
                known.map(drop)
            }) {
                return refuse(&error.to_string());
            }
            Ok(ProbePlan {
                name: None,
                ..*probe
            })
        }
        Ok(Workload::Load(_)) => refuse("it is a load"),
        Err(why) => refuse(&why),
    }
}

impl StageOptions {
    /// Measures; the exit code.
    ///
    /// # Errors
    /// What is asked for cannot be.
    pub fn run(self) -> Result<i32, Failure> {
        self.common.check(Command::Stage)?;
        let plan = self.plan()?;
        let measurement = self.common.measurement(plan, Form::Rows)?;
        measurement.answer::<Staging>()
    }

    fn plan(&self) -> Result<Plan, Failure> {
        let mut services = Vec::new();
        let mut streams = Vec::new();
        for path in each_once(self.paths.iter().copied()) {
            match path {
                AnyPath::Files(files) if files.service != Service::Fs => services.push(path),
                AnyPath::TCP => streams.push(path),
                _ => {
                    return Err(Failure::usage(format!(
                        "{path} moves no file between hosts: write nfs2, nfs3, ftp or tcp"
                    )));
                }
            }
        }
        let (input, output) = (
            Bytes(self.input).to_string(),
            Bytes(self.output).to_string(),
        );
        let mut knobs: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, values) in &self.knobs {
            if values.len() > 1 || name == "op" || name == BUSY {
                return Err(Failure::usage(format!(
                    "`--with {name}={}` is not one value of a service of files: compare several by `sonde probe files`",
                    values.join(",")
                )));
            }
            knobs.insert(name.clone(), values.clone());
        }
        let usual = || vec!["scratch".to_owned()];
        knobs.entry("store".into()).or_insert_with(usual);
        let files = |operation: &str, size: &str| {
            let mut probe = ProbePlan::new(ProbeKind::Files, &services, &[size]);
            probe.knobs.clone_from(&knobs);
            probe.knobs.insert("op".into(), vec![operation.into()]);
            probe
        };
        let mut probes = Vec::new();
        if !services.is_empty() {
            probes.extend([files("read", &input), files("write", &output)]);
        }
        if !streams.is_empty() {
            let mut probe = ProbePlan::new(ProbeKind::Throughput, &streams, &[]);
            probe.mode = Some(Mode::Message);
            probe.size = each_once([input, output].into_iter());
            probes.push(probe);
        }
        for probe in &mut probes {
            probe.budget = Some(self.budget);
        }
        let mut job = self.job.clone();
        if job.path.is_empty() {
            job.path = vec![usual_path(self.common.testbed.0)?];
        }
        probes.push(job);
        if !self.busy.is_empty() {
            // Quiet hosts are what busy ones are held against.
            let levels = std::iter::once(0).chain(self.busy.iter().copied());
            let levels: Vec<String> = each_once(levels).iter().map(u32::to_string).collect();
            for probe in &mut probes {
                probe.knobs.insert(BUSY.into(), levels.clone());
            }
        }
        Ok(once(self.common.plan(probes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        options: StageOptions,
    }

    fn parsed(words: &str) -> Result<StageOptions, clap::Error> {
        let words = words.split(' ').filter(|word| !word.is_empty());
        let line = Line::try_parse_from(std::iter::once("stage").chain(words));
        line.map(|line| line.options)
    }

    fn plan(words: &str) -> Result<Plan, Failure> {
        parsed(words).unwrap().plan()
    }

    #[test]
    fn options_are_those_of_a_plan() {
        let made = plan("--testbed lab --network ethernet-10,atm-oc3c").unwrap();
        let [reads, writes, stream, job] = &made.probes[..] else {
            panic!("{made:?}");
        };
        let paths: Vec<String> = reads.path.iter().map(ToString::to_string).collect();
        assert_eq!(paths, ["nfs2:udp", "ftp"]);
        assert_eq!(
            (
                &*reads.size[0],
                &*reads.knobs["op"][0],
                &*reads.knobs["store"][0]
            ),
            ("16MiB", "read", "scratch")
        );
        assert_eq!(
            (&*writes.size[0], &*writes.knobs["op"][0]),
            ("4MiB", "write")
        );
        assert_eq!(
            (stream.mode, &*stream.size),
            (
                Some(Mode::Message),
                &["16MiB".to_owned(), "4MiB".into()][..]
            )
        );
        assert_eq!(
            (&*job.knobs["kernel"][0], &*job.knobs["class"][0]),
            ("lu", "S")
        );
        assert_eq!(
            (made.networks.len(), made.repeat.max),
            (2, made.repeat.launches)
        );
        made.check().unwrap();
        assert_eq!(Plan::parse(&made.text().unwrap()).unwrap(), made);
        let busy = "npb:cg:W:ranks=2 --input 1K --output 1K --busy 4 --path tcp --testbed lab";
        let busy = plan(busy).unwrap();
        assert!(
            busy.probes
                .iter()
                .all(|probe| probe.knobs[BUSY] == ["0", "4"])
        );
        assert_eq!((busy.probes.len(), busy.probes[0].size.len()), (2, 1));
        busy.check().unwrap();
        let here = plan("is --testbed local").unwrap();
        assert_eq!(here.probes[3].path[0].to_string(), "native:shm");
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (words, part) in [
            ("--path udp", "moves no file"),
            ("--path fs", "moves no file"),
            ("--with store=memory,scratch", "not one value"),
            ("--with op=read", "not one value"),
        ] {
            let error = plan(words).unwrap_err().to_string();
            assert!(error.contains(part), "{words}: {error}");
        }
        let refused = plan("--path nfs2 --with copy=64K --testbed lab");
        let error = refused.unwrap().check().unwrap_err().to_string();
        assert!(error.contains("it is of ftp"), "{error}");
        let refused = plan("--busy 5000 --testbed lab").unwrap();
        let error = refused.check().unwrap_err().to_string();
        assert!(error.contains("0 to 1024"), "{error}");
        for (words, part) in [
            ("dg", "is:A:ranks=8"),
            ("lu@fddi", "--network"),
            ("--output ./runs", "not the size"),
        ] {
            let error = parsed(words).unwrap_err().to_string();
            assert!(error.contains(part), "{words}: {error}");
        }
    }
}
