//! Programs beside sonde: what reaching real machines needs, and the tools to compare with.
//!
//! Checked: `without_ssh_there_are_no_hosts`, `keys_are_told_and_not_read`, `peers_tell_their_versions`.

use super::machine::{Machine, version};
use super::{Check, Group, topic};
use std::os::unix::fs::FileTypeExt;

/// A program that is asked for its version: its name, the argument, a word of the answer's line, Debian's package, what it
/// is needed for.
type Program = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

const SSH: Program = (
    "ssh",
    "-V",
    "OpenSSH",
    "openssh-client",
    "--testbed hosts:...",
);
/// It names itself only in what it says to an unknown option.
const SSHD: Program = (
    "sshd",
    "-V",
    "OpenSSH",
    "openssh-server",
    "trying ssh between hosts of a lab",
);
const GETENT: Program = (
    "getent",
    "--version",
    "getent",
    "libc-bin",
    "names of hosts: addresses do without",
);
const IPERF3: Program = (
    "iperf3",
    "--version",
    "iperf",
    "iperf3",
    "comparing stream rates",
);
const SOCKPERF: Program = (
    "sockperf",
    "--version",
    "sockperf",
    "sockperf",
    "comparing latencies",
);

/// All checks of real hosts.
pub fn checks(machine: &Machine) -> Vec<Check> {
    vec![
        program(machine, Group::Hosts, SSH),
        keys(machine),
        program(machine, Group::Hosts, GETENT),
        program(machine, Group::Hosts, SSHD),
    ]
}

/// Other tools.
pub fn peers(machine: &Machine) -> Vec<Check> {
    [IPERF3, SOCKPERF]
        .map(|peer| program(machine, Group::Peers, peer))
        .to_vec()
}

fn program(machine: &Machine, group: Group, asked: Program) -> Check {
    let (name, argument, word, package, needed_for) = asked;
    let topic = topic(group, name, needed_for);
    let install = machine.install(package);
    let Some(path) = machine.program(name) else {
        return topic.missing("not there", install);
    };
    match version(&path, argument, word) {
        Ok(line) => topic.ok(format!("{}, {}", number(&line), path.display())),
        Err(problem) => topic.limited(problem, install),
    }
}

/// The first word of a line that holds a digit, which is the version; else the line.
fn number(line: &str) -> &str {
    line.split([' ', ',', '(', ')'])
        .find(|word| word.contains(|letter: char| letter.is_ascii_digit()))
        .unwrap_or(line)
}

/// Whether an agent or keys can open the way without a password. Keys are not read.
fn keys(machine: &Machine) -> Check {
    let topic = topic(Group::Hosts, "ssh keys", "hosts that ask for no password");
    let agent = machine.agent.as_ref().is_some_and(|socket| {
        std::fs::metadata(socket).is_ok_and(|data| data.file_type().is_socket())
    });
    let folder = machine.home.as_ref().map(|home| home.join(".ssh"));
    let entries = folder.and_then(|folder| std::fs::read_dir(folder).ok());
    let mut names: Vec<String> = entries
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.starts_with("id_") && !name.ends_with(".pub"))
        .collect();
    names.sort_unstable();
    let mut found = Vec::new();
    if agent {
        found.push("an agent".to_owned());
    }
    if !names.is_empty() {
        found.push(format!("{} in ~/.ssh", names.join(" ")));
    }
    if found.is_empty() {
        return topic.limited(
            "no agent, and no key of the usual names in ~/.ssh (your ssh config may name others)",
            "ssh-keygen -t ed25519; ssh-copy-id HOST, for each host",
        );
    }
    topic.ok(found.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Status;
    use crate::doctor::machine::tests::Tree;

    #[test]
    fn without_ssh_there_are_no_hosts() {
        let tree = Tree::of(&[("usr/bin/apt-get", "")]);
        let checks = checks(&tree.machine);
        assert_eq!(checks[0].status, Status::Missing);
        assert_eq!(
            checks[0].remedy.as_deref(),
            Some("as root: apt-get install openssh-client")
        );
        let other = Tree::of(&[("usr/bin/ssh", "#!/bin/sh\necho Dropbear v2022.83 >&2\n")]);
        assert_eq!(
            program(&other.machine, Group::Hosts, SSH).status,
            Status::Limited
        );
    }

    #[test]
    fn keys_are_told_and_not_read() {
        let tree = Tree::of(&[
            ("home/ann/.ssh/id_ed25519", ""),
            ("home/ann/.ssh/id_ed25519.pub", ""),
            ("home/ann/.ssh/known_hosts", ""),
        ]);
        assert_eq!(keys(&tree.machine).value, "id_ed25519 in ~/.ssh");
        let mut none = Tree::of(&[("home/ann/agent", "no socket")]);
        none.machine.agent = Some(none.machine.file("home/ann/agent"));
        let found = keys(&none.machine);
        assert!(found.status == Status::Limited && found.remedy.unwrap().contains("ssh-keygen"));
    }

    #[test]
    fn peers_tell_their_versions() {
        let tree = Tree::of(&[(
            "usr/bin/iperf3",
            "#!/bin/sh\necho 'iperf 3.12 (cJSON 1.7.15)'\n",
        )]);
        let [iperf3, sockperf] = &peers(&tree.machine)[..] else {
            panic!("two peers")
        };
        assert!(iperf3.value.starts_with("3.12, /"), "{iperf3:?}");
        assert_eq!(sockperf.status, Status::Missing);
        for (line, version) in [
            (
                "OpenSSH_9.2p1 Debian-2+deb12u10, OpenSSL 3.0.19",
                "OpenSSH_9.2p1",
            ),
            (
                "getent (Debian GLIBC 2.36-9+deb12u13) 2.36",
                "2.36-9+deb12u13",
            ),
            ("sockperf, version 3.7-no.git", "3.7-no.git"),
            ("a tool of no number", "a tool of no number"),
        ] {
            assert_eq!(number(line), version);
        }
    }
}
