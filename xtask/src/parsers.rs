//! Modules that read bytes from outside end with an error, never with a panic: the lints that say so stand in each of them.
//!
//! Model:   [`PARSERS`] lists these modules; each begins with [`DENIAL`], which its modules below inherit. Every fuzz target says in its
//!          head what it reads, `Parses: crates/...`, and names at least one module of the list.
//! Checked: `a_parser_without_the_denial_is_found`, `what_is_gone_is_found`, `a_denial_that_is_not_listed_is_found`,
//!          `a_target_names_what_it_parses`.

use std::path::Path;

use crate::finding::Finding;
use crate::source::code_of;
use crate::tree::Tree;

/// What a module must not do with what it reads, without white space.
const DENIAL: &str = "#![deny(clippy::unwrap_used,clippy::expect_used,clippy::indexing_slicing,clippy::arithmetic_side_effects)]";
/// The lint by which a denial is found that is not listed.
const SIGN: &str = "clippy::indexing_slicing";
/// Where a target says what it reads.
const PARSES: &str = "//! Parses:";
const TARGETS: &str = "fuzz/fuzz_targets";
const HERE: &str = "xtask/src/parsers.rs";

/// The modules that read bytes from outside.
#[rustfmt::skip]
const PARSERS: &[&str] = &[
    "crates/adapter/src/group.rs",
    "crates/adapter/src/load/form.rs",
    "crates/channel/src/arrivals.rs",
    "crates/channel/src/packet/head.rs",
    "crates/channel/src/payload.rs",
    "crates/fleet/src/agent/tail.rs",
    "crates/fleet/src/connect/handshake.rs",
    "crates/fleet/src/connect/line.rs",
    "crates/fleet/src/connect/listener.rs",
    "crates/fleet/src/connect/peer.rs",
    "crates/fleet/src/connect/relay.rs",
    "crates/fleet/src/connect/token.rs",
    "crates/fleet/src/connect/trunk.rs",
    "crates/fleet/src/launcher/mod.rs",
    "crates/fleet/src/load.rs",
    "crates/fleet/src/networks.rs",
    "crates/fleet/src/ranks/output.rs",
    "crates/fleet/src/ssh/greeting.rs",
    "crates/fleet/src/target.rs",
    "crates/fleet/src/virtual_machine/console.rs",
    "crates/lab/src/account.rs",
    "crates/lab/src/config.rs",
    "crates/lab/src/control.rs",
    "crates/lab/src/ids.rs",
    "crates/lab/src/pcap.rs",
    "crates/lab/src/rsh.rs",
    "crates/lab/src/switch/talk.rs",
    "crates/lab/src/wire.rs",
    "crates/link/src/catalogue.rs",
    "crates/link/src/ledger.rs",
    "crates/link/src/schedule.rs",
    "crates/link/src/script.rs",
    "crates/link/src/site/check.rs",
    "crates/link/src/site/spec.rs",
    "crates/link/src/spec.rs",
    "crates/link/src/words.rs",
    "crates/measure/src/files.rs",
    "crates/measure/src/fixed.rs",
    "crates/measure/src/knob_values.rs",
    "crates/measure/src/knobs.rs",
    "crates/measure/src/lengths.rs",
    "crates/measure/src/loss.rs",
    "crates/measure/src/number.rs",
    "crates/measure/src/pace.rs",
    "crates/measure/src/path.rs",
    "crates/measure/src/replay.rs",
    "crates/measure/src/settings.rs",
    "crates/measure/src/spec.rs",
    "crates/measure/src/text.rs",
    "crates/message/src/collectives/choice.rs",
    "crates/message/src/letters/letter.rs",
    "crates/message/src/native/frame.rs",
    "crates/message/src/native/record.rs",
    "crates/message/src/path.rs",
    "crates/message/src/timeline/packed.rs",
    "crates/place/src/cluster.rs",
    "crates/place/src/file.rs",
    "crates/place/src/launcher.rs",
    "crates/probe/src/admission.rs",
    "crates/probe/src/circuit.rs",
    "crates/probe/src/facts.rs",
    "crates/probe/src/frame.rs",
    "crates/probe/src/host/journal.rs",
    "crates/probe/src/library/report.rs",
    "crates/probe/src/library/said.rs",
    "crates/probe/src/load/sink.rs",
    "crates/probe/src/pattern/listener.rs",
    "crates/probe/src/pattern/others.rs",
    "crates/probe/src/pattern/words.rs",
    "crates/probe/src/program.rs",
    "crates/rank/src/arguments.rs",
    "crates/rank/src/meeting.rs",
    "crates/record/src/document.rs",
    "crates/record/src/store/blob.rs",
    "crates/record/src/store/old.rs",
    "crates/record/src/store/read.rs",
    "crates/record/src/store/value.rs",
    "crates/sonde/src/any_path.rs",
    "crates/sonde/src/messages.rs",
    "crates/sonde/src/plan/mod.rs",
    "crates/sonde/src/plan/network.rs",
    "crates/sonde/src/plan/testbed.rs",
    "crates/sonde/src/serve/request.rs",
    "crates/stats/src/series/parts.rs",
    "crates/sys/src/file.rs",
    "crates/units/src/matrix.rs",
    "crates/units/src/parse.rs",
    "crates/units/src/topology/words.rs",
    "crates/workload/src/files/counts.rs",
    "crates/workload/src/files/ftp/dialogue.rs",
    "crates/workload/src/files/nfs/mount.rs",
    "crates/workload/src/files/nfs/v2.rs",
    "crates/workload/src/files/nfs/v3.rs",
    "crates/workload/src/files/rpc.rs",
    "crates/workload/src/files/xdr.rs",
    "crates/workload/src/npb/size.rs",
];

/// Finds modules of the list without the denial, denials that are not listed, and targets that name no module of it.
pub fn check(tree: &Tree) -> Vec<Finding> {
    check_by(tree, PARSERS)
}

fn check_by(tree: &Tree, parsers: &[&str]) -> Vec<Finding> {
    let listed = parsers.iter().filter_map(|path| parser(tree, path));
    let unlisted = tree.sources().filter_map(|(path, text)| {
        let is_listed = parsers.iter().any(|parser| path == Path::new(parser));
        let denies = path.starts_with("crates") && squeezed(text).contains(SIGN);
        (denies && !is_listed && inner(text)).then(|| {
            Finding::new(
                path,
                1,
                "it reads bytes from outside, and the list does not say so",
                format!("add it to PARSERS in {HERE}"),
            )
        })
    });
    let targets = tree
        .with_extension("rs")
        .filter(|(path, _)| path.starts_with(TARGETS))
        .filter_map(|(path, text)| target(path, text, parsers));
    listed.chain(unlisted).chain(targets).collect()
}

/// Whether a denial is that of the whole module.
fn inner(text: &str) -> bool {
    squeezed(text).contains("#![deny(clippy::")
}

fn squeezed(text: &str) -> String {
    code_of(text).split_whitespace().collect()
}

fn parser(tree: &Tree, path: &str) -> Option<Finding> {
    let Some(text) = tree.text(path) else {
        let what = format!("it lists {path}, which is not there");
        return Some(Finding::new(Path::new(HERE), 1, what, "take the line out"));
    };
    (!squeezed(text).contains(DENIAL)).then(|| {
        Finding::new(
            Path::new(path),
            1,
            "it reads bytes from outside, and may panic",
            format!("write `{DENIAL}` below its head"),
        )
    })
}

/// What is wrong with the line of a target that says what it parses.
fn target(path: &Path, text: &str, parsers: &[&str]) -> Option<Finding> {
    let found = |line, what: String| {
        let remedy = format!(
            "name modules of PARSERS in {HERE}, as in `{PARSES} crates/link/src/script.rs`"
        );
        Some(Finding::new(path, line, what, remedy))
    };
    let mut lines = (1..).zip(text.lines());
    let Some((line, said)) = lines.find_map(|(at, line)| Some((at, line.strip_prefix(PARSES)?)))
    else {
        return found(1, "the target does not say what it parses".into());
    };
    let mut modules = said.split([',', ' ']).filter(|word| !word.is_empty());
    let Some(first) = modules.next() else {
        return found(line, "the target names no module".into());
    };
    let strange = std::iter::once(first)
        .chain(modules)
        .find(|module| !parsers.contains(module));
    strange.and_then(|module| {
        found(
            line,
            format!("it parses {module}, which is not in the list"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DENIED: &str = "//! A reader.\n#![deny(\n    clippy::unwrap_used,\n    clippy::expect_used,\n    clippy::indexing_slicing,\n    clippy::arithmetic_side_effects\n)]\nuse x;\n";

    fn found(files: &[(&str, &str)], parsers: &[&str]) -> Vec<String> {
        let found = check_by(&Tree::of(files), parsers);
        found.iter().map(|one| one.what().to_owned()).collect()
    }

    #[test]
    fn a_parser_without_the_denial_is_found() {
        let path = "crates/link/src/script.rs";
        let may_panic = ["it reads bytes from outside, and may panic"];
        assert!(found(&[(path, DENIED)], &[path]).is_empty());
        assert_eq!(found(&[(path, "//! A reader.\n")], &[path]), may_panic);
        // In a comment, or without one of the lints, it denies nothing.
        let comment = "//! A reader.\n// #![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::arithmetic_side_effects)]\n";
        assert_eq!(found(&[(path, comment)], &[path]), may_panic);
        let part = DENIED.replace("    clippy::expect_used,\n", "");
        assert_eq!(found(&[(path, &part)], &[path]), may_panic);
    }

    #[test]
    fn what_is_gone_is_found() {
        let gone = found(&[], &["crates/link/src/gone.rs"]);
        assert_eq!(
            gone,
            ["it lists crates/link/src/gone.rs, which is not there"]
        );
    }

    #[test]
    fn a_denial_that_is_not_listed_is_found() {
        let path = "crates/link/src/script.rs";
        assert_eq!(
            found(&[(path, DENIED)], &[]),
            ["it reads bytes from outside, and the list does not say so"]
        );
        // An allowance on an item is none.
        let item = "//! A model.\n#[allow(clippy::indexing_slicing)]\nfn f() {}\n";
        assert!(found(&[(path, item)], &[]).is_empty());
    }

    #[test]
    fn a_target_names_what_it_parses() {
        let (path, reader) = ("fuzz/fuzz_targets/script.rs", "crates/link/src/script.rs");
        let said = |text: &str| found(&[(path, text), (reader, DENIED)], &[reader]);
        assert!(said("//! A script.\n//! Parses: crates/link/src/script.rs\n").is_empty());
        assert_eq!(
            said("//! A script.\n"),
            ["the target does not say what it parses"]
        );
        assert_eq!(
            said("//! A script.\n//! Parses:\n"),
            ["the target names no module"]
        );
        assert_eq!(
            said("//! A.\n//! Parses: crates/link/src/script.rs, crates/link/src/load.rs\n"),
            ["it parses crates/link/src/load.rs, which is not in the list"]
        );
    }
}
