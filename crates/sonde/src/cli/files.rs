//! `sonde probe files`: its options, lowered to a plan of its own.

use super::options::Common;
use super::typed;
use crate::any_path::AnyPath;
use crate::failure::Failure;
use crate::plan::{Plan, ProbeKind, ProbePlan};
use crate::shown::Form;
use crate::verify::Verifier;
use clap::Args;
use sonde_measure::files::{Meta, Service};
use sonde_measure::spec::SAMPLES_MAX;
use sonde_units::Span;
use std::collections::BTreeMap;

/// Examples behind `--help`.
pub const EXAMPLES: &str = "Examples:
  sonde probe files --path nfs2:udp,nfs3:tcp --op read,write --network ethernet-100
  sonde probe files --path nfs3 --op read --transfer 8K,64K,1M --outstanding 1,8 --size 64K..16M --testbed hosts:a,b
  sonde probe files --op meta --with names=1000 --network ethernet-1g
  sonde probe files --path nfs2 --op write --outstanding 8 --with service=7ms --with daemons=1,4 --with rcvbuf=64K,1M --network hippi-800
  sonde probe files --path nfs3,ftp --clients 1,4 --network ethernet-10
  sonde probe files --path nfs2 --op read,write --network ethernet-100 --verify
  sonde probe files --path nfs3 --op write --with sync=yes,no --with disk=16Mbit --with seek=10ms
  sonde probe files --path ftp --op read,write --with disk=96Mbit --with client-disk=16Mbit --with read-ahead=0,256K --network ethernet-100
  sonde probe files --path ftp --op read --with window=8K,32K,64K --network hippi-800:delay=1.2ms
  sonde probe files --path ftp --op write --with type=ascii --with translate=character,block --testbed local
  sonde probe files --path fs --op read,write --outstanding 1,8 --with directory=/mnt/scratch --with direct=yes,no --testbed local

The server is sonde's own and runs on the receiving host for as long as a repetition: no NFS or FTP server, no mount and no root are needed.
Sizes are those of whole files; a call on names has none. By ftp files are read (RETR) and written (STOR). Other parameters (--with): sync,
disk, seek, cache, store, rcvbuf; of nfs2 and nfs3 attribute-cache, retransmit, daemons, service, queue, reply-cache, names; of ftp window,
sndbuf, buffer, copy, read-ahead, type, translate, client-disk, client-seek, client-cache; of fs sync, names, directory, direct, cached. By fs
the client's host reads and writes itself, without a server. docs/files.md says what each is.";

/// What `sonde probe files` takes.
#[derive(Debug, Args)]
pub struct FilesOptions {
    /// Protocol and transport: nfs2:udp, nfs2:tcp, nfs3:udp, nfs3:tcp, ftp, or fs, a mounted file system; nfs2 is nfs2:udp and nfs3 is nfs3:tcp.
    #[arg(short = 'p', long = "path", value_delimiter = ',', default_value = "nfs3:tcp", value_parser = typed::path_name(), hide_possible_values = true)]
    paths: Vec<AnyPath>,
    /// What is done with files: read, write; meta is getattr, lookup, readdir, create and remove, each of which can be named.
    #[arg(long = "op", value_delimiter = ',', default_value = "read", value_parser = typed::operation())]
    operations: Vec<String>,
    /// Size of a file: 1M, 64K..16M (powers of two).
    #[arg(long = "size", value_delimiter = ',', default_value = "1MiB", value_parser = typed::sizes)]
    sizes: Vec<String>,
    /// Bytes of a read or write call; with several values, each of them [default: 8K for nfs2, 64K for nfs3:tcp, 56K for nfs3:udp].
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = typed::length)]
    transfer: Vec<String>,
    /// Calls that the client has outstanding, one more than its block daemons (biods); with several values, each of them.
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1")]
    outstanding: Vec<u32>,
    /// Clients of the server at once, each with its own connection and file on the client's host; the rate is their sum. With several values, each of them.
    #[arg(long, value_name = "N", value_delimiter = ',')]
    clients: Vec<u32>,
    /// Look into each finding: change the one setting that it names, and measure that cell again.
    #[arg(long)]
    verify: bool,
    /// Other parameters; with several values, each of them.
    #[arg(long = "with", value_name = "KNOB=VALUE,...", value_parser = typed::knob)]
    knobs: Vec<(String, Vec<String>)>,
    /// Measuring time for each size, in each repetition.
    #[arg(short = 't', long, aliases = ["time", "duration"], value_name = "TIME", default_value = "1s", value_parser = Span::of_option)]
    budget: Span,
    /// The most calls of each size in a repetition.
    #[arg(long, default_value_t = 10_000, value_parser = typed::count::<SAMPLES_MAX>)]
    samples: u64,
    #[command(flatten)]
    common: Common,
}

impl FilesOptions {
    /// Measures; the exit code.
    pub fn run(self) -> Result<i32, Failure> {
        let plan = self.plan();
        let measurement = self.common.measurement(plan, Form::Rows)?;
        match self.verify {
            true => measurement.run_by(&mut Verifier::default()),
            false => measurement.run(),
        }
    }

    /// A probe for operations on whole files, and one for calls on names, which have no size.
    fn plan(&self) -> Plan {
        let mut knobs: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, values) in &self.knobs {
            knobs
                .entry(name.clone())
                .or_default()
                .extend(values.iter().cloned());
        }
        let outstanding = self.outstanding.iter().map(u32::to_string);
        knobs.insert("outstanding".into(), outstanding.collect());
        if !self.clients.is_empty() {
            let clients = self.clients.iter().map(u32::to_string);
            knobs.insert("clients".into(), clients.collect());
        }
        let mut operations: Vec<String> = Vec::new();
        for operation in &self.operations {
            match operation.as_str() {
                "meta" => operations.extend(Meta::ALL.map(|call| call.name().to_owned())),
                one => operations.push(one.to_owned()),
            }
        }
        let is_whole = |operation: &String| ["read", "write"].contains(&operation.as_str());
        let (whole, names): (Vec<String>, Vec<String>) = operations.into_iter().partition(is_whole);
        let is_fs =
            |path: &AnyPath| matches!(path, AnyPath::Files(path) if path.service == Service::Fs);
        let (of_hosts, served): (Vec<AnyPath>, Vec<AnyPath>) =
            self.paths.iter().copied().partition(is_fs);
        let probe = |paths: &[AnyPath], operations: Vec<String>, is_whole: bool| {
            let mut probe = ProbePlan::new(ProbeKind::Files, paths, &[]);
            (probe.budget, probe.samples) = (Some(self.budget), Some(self.samples));
            probe.knobs = knobs.clone();
            if paths == of_hosts {
                // A row says whether it may be that of the host's memory.
                let usual = || vec!["no".to_owned()];
                probe.knobs.entry("cached".into()).or_insert_with(usual);
            }
            probe.knobs.insert("op".into(), operations);
            if is_whole {
                probe.size.clone_from(&self.sizes);
                if !self.transfer.is_empty() {
                    probe.knobs.insert("transfer".into(), self.transfer.clone());
                }
            }
            probe
        };
        let mut probes = Vec::new();
        for paths in [&served, &of_hosts]
            .into_iter()
            .filter(|paths| !paths.is_empty())
        {
            if !whole.is_empty() {
                probes.push(probe(paths, whole.clone(), true));
            }
            if !names.is_empty() {
                probes.push(probe(paths, names.clone(), false));
            }
        }
        self.common.plan(probes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        options: FilesOptions,
    }

    fn plan(words: &[&str]) -> Plan {
        let words = [&["files"], words].concat();
        Line::try_parse_from(words).unwrap().options.plan()
    }

    #[test]
    fn options_are_those_of_a_plan() {
        let options = plan(&["--path", "nfs2,nfs3", "--op", "read,meta", "--size", "64K"]);
        assert_eq!(options.probes.len(), 2);
        let (whole, names) = (&options.probes[0], &options.probes[1]);
        assert_eq!(
            (&*whole.knobs["op"], &*whole.size),
            (&["read".to_owned()][..], &["64KiB".to_owned()][..])
        );
        assert_eq!((names.knobs["op"].len(), names.size.len()), (5, 0));
        assert!(
            !whole.knobs.contains_key("clients"),
            "cells are what they were"
        );
        let of_both = plan(&["--path", "nfs3,fs"]).probes;
        assert_eq!(of_both.len(), 2);
        assert_eq!(of_both[1].knobs["cached"], ["no"]);
        assert!(!of_both[0].knobs.contains_key("cached"));
        let of_clients = &plan(&["--clients", "1,4"]).probes[0];
        assert_eq!(of_clients.knobs["clients"], ["1", "4"]);
        assert!(names.is_of_names() && !whole.is_of_names());
        let printed = options.text().unwrap();
        assert_eq!(Plan::parse(&printed).unwrap(), options, "{printed}");
        let text = "[[probe]]\nkind = \"files\"\n[probe.with]\nop = [\"write\"]";
        let filled = &Plan::parse(text).unwrap().probes[0];
        assert_eq!(
            (filled.path[0].name(), &*filled.size[0]),
            ("nfs3:tcp".into(), "1MiB")
        );
    }

    #[test]
    fn what_does_not_fit_is_refused_by_the_plan() {
        let refused = |words: &[&str]| plan(words).check().unwrap_err().to_string();
        let error = refused(&["--path", "nfs3:udp", "--transfer", "64K"]);
        assert!(error.contains("do not fit in a datagram"), "{error}");
        let error = refused(&["--path", "ftp", "--op", "meta"]);
        assert!(error.contains("ftp has no "), "{error}");
        let error = refused(&["--path", "ftp", "--transfer", "64K"]);
        assert!(error.contains("it is of nfs2 and nfs3"), "{error}");
        let error = refused(&["--path", "ftp", "--outstanding", "2"]);
        assert!(error.contains("one transfer at a time"), "{error}");
        let error = refused(&["--path", "nfs3", "--with", "copy=64K"]);
        assert!(error.contains("it is of ftp"), "{error}");
        let error = refused(&["--clients", "33"]);
        assert!(
            error.contains("clients") && error.contains("from 1 to 32"),
            "{error}"
        );
        let error = refused(&["--path", "fs", "--op", "meta", "--outstanding", "2"]);
        assert!(error.contains("one call at a time"), "{error}");
        let error = refused(&["--path", "fs", "--with", "daemons=2"]);
        assert!(error.contains("fs has none"), "{error}");
        let error = refused(&["--path", "tcp"]);
        assert!(error.contains("tcp has no files"), "{error}");
        let error = refused(&["--with", "seek=1ms"]);
        assert!(error.contains("disk=16Mbit"), "{error}");
        let latency = "[[probe]]\nkind = \"latency\"\npath = [\"nfs3:tcp\"]";
        let error = Plan::parse(latency).unwrap_err().to_string();
        assert!(error.contains("nfs3:tcp has no latency"), "{error}");
    }
}
