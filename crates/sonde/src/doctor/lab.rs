//! What the lab needs: namespaces, attachment, user ids, processors, congestion control, memory, and a real start.
//!
//! Source:  user_namespaces(7), namespaces(7), cgroup v2 `cpu.max`, Documentation/networking/tuntap.rst.
//! Units:   MiB of memory, hundredths of a processor of a quota.
//! Checked: `obstacles_give_their_commands`, `limits_are_named`, `tun_is_told_from_what_it_is_not`,
//!          `id_ranges_are_for_ordinary_users`, `processors_and_quotas`, `cubic_and_memory`.

use super::machine::Machine;
use super::trial::Trial;
use super::{Check, Group, Topic, topic};
use sonde_sys::namespace::{self, Obstacle, SubIdRanges};
use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// Namespaces of users, which are the most, that a lab of four hosts uses: its own and two a host; and as many again.
const NAMESPACES_MIN: u64 = 18;
/// Frames under way may take 512 MiB; agents and the store need some.
const MEMORY_MIB: u64 = 1024;
const KINDS: [&str; 6] = ["user", "mnt", "net", "pid", "uts", "ipc"];

fn about(name: &str, needed_for: &str) -> Topic {
    topic(Group::Lab, name, needed_for)
}

/// All checks of the lab; `program` plays its parts.
pub fn checks(machine: &Machine, program: &Path) -> Vec<Check> {
    let obstacle = namespace::obstacle();
    let ranges = namespace::subid_ranges(machine.uid);
    let online = sonde_sys::cpu::online().map_or(1, |cpus| cpus.len());
    let user = namespaces(&obstacle, program);
    let remedy = user.remedy.clone();
    let mut checks = vec![
        user,
        limits(machine),
        tun(machine),
        ids(machine, &ranges),
        processors(machine, online),
        congestion(machine),
        memory(machine),
    ];
    checks.extend(Trial::run(program).checks(remedy.as_deref()));
    checks
}

/// Whether a user namespace with a network inside can be had.
fn namespaces(obstacle: &sonde_sys::Result<Option<Obstacle>>, program: &Path) -> Check {
    let topic = about("user namespaces", "labs, of root's too");
    match obstacle {
        Ok(None) => topic.ok("available"),
        Ok(Some(obstacle)) => {
            let said = obstacle.to_string();
            let value = said.split("; ").next().unwrap_or(&said);
            // AppArmor's profile names the program.
            let path = program.display().to_string();
            let remedy = obstacle.remedy().replace("/path/to/sonde", &path);
            topic.missing(value, remedy)
        }
        Err(error) => topic.missing(
            error.to_string(),
            "lower the number of processes of this user",
        ),
    }
}

/// The limits of `user.max_*_namespaces`.
fn limits(machine: &Machine) -> Check {
    let topic = about("namespace limits", "labs of many hosts");
    let read = |kind: &'static str| {
        let found = machine.numbers(&format!("proc/sys/user/max_{kind}_namespaces"));
        found.first().map(|limit| (*limit, kind))
    };
    match KINDS.into_iter().filter_map(read).min() {
        None => topic.ok("the kernel sets none"),
        Some((least, kind)) => topic.judge(
            least >= NAMESPACES_MIN,
            format!("{least} of each kind or more (least: {kind})"),
            format!("as root: sysctl -w user.max_{kind}_namespaces=15000"),
        ),
    }
}

/// Whether TAP interfaces can be made; else hosts are attached by veth.
fn tun(machine: &Machine) -> Check {
    let topic = about(
        "/dev/net/tun",
        "TAP interfaces, which carry a quarter to a half more frames than veth",
    );
    let path = machine.file("dev/net/tun");
    let make = "as root: mkdir -p /dev/net; mknod -m 666 /dev/net/tun c 10 200; modprobe tun";
    match std::fs::File::options().read(true).write(true).open(&path) {
        Ok(file) if file.metadata().is_ok_and(|data| data.file_type().is_char_device()) => {
            topic.ok("opens: hosts can be attached by TAP")
        }
        Ok(_) => topic.limited("it is not a device: veth instead", format!("rm {}; {make}", path.display())),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => topic.limited(
            "may not be opened by this user: veth instead",
            "as root: chmod 666 /dev/net/tun (until the next boot; udev of a full system does it by itself)",
        ),
        Err(error) if error.kind() == ErrorKind::NotFound => topic.limited("not there: veth instead", make),
        Err(error) => topic.limited(format!("{error}: veth instead"), "as root: modprobe tun"),
    }
}

/// Whether programs of a lab can be of several users.
fn ids(machine: &Machine, ranges: &SubIdRanges) -> Check {
    let topic = about(
        "user ids",
        "servers that change their user (sshd, tcpdump) in a lab without root",
    );
    if machine.uid == 0 {
        return topic.ok("root has all");
    }
    let programs = ["newuidmap", "newgidmap"].map(|name| machine.program(name));
    if programs.iter().any(Option::is_none) {
        return topic.limited("one: newuidmap is not there", machine.install("uidmap"));
    }
    let name = namespace::user_name(machine.uid).unwrap_or_else(|| machine.uid.to_string());
    match (ranges.uid.first(), ranges.gid.first()) {
        (Some(uids), Some(gids)) => topic.ok(format!(
            "{} by newuidmap",
            1 + u64::from(uids.count.min(gids.count))
        )),
        _ => topic.limited(
            "one: /etc/subuid and /etc/subgid have no range for this user",
            format!(
                "as root: usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {name}"
            ),
        ),
    }
}

/// How many processors the lab's switch and programs share, and whether a quota stops them at times.
fn processors(machine: &Machine, online: usize) -> Check {
    let topic = about("processors", "streams at full rate beside the switch");
    let count = match online {
        1 => "1".to_owned(),
        online => format!("{online}: the switch has one, programs the others"),
    };
    if let Some(hundredths) = quota(machine) {
        let value = format!(
            "{count}; a quota of {}.{:02} of them",
            hundredths / 100,
            hundredths % 100
        );
        return topic.limited(
            value,
            "lift the quota (cpu.max of the control group; docker: no --cpus): it stops all programs for tens of ms",
        );
    }
    if online == 1 {
        return topic.limited(
            "1: streams share it with the switch, and poorer rates are the machine's",
            "give the virtual machine or the job another processor; latencies are right as it is",
        );
    }
    topic.ok(count)
}

/// The tightest quota of this process's control groups, in hundredths of a processor.
fn quota(machine: &Machine) -> Option<u64> {
    let groups = machine.text("proc/self/cgroup")?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"));
    let mut tightest = None;
    for group in path
        .into_iter()
        .flat_map(|path| Path::new(path).ancestors())
    {
        let group = group.to_string_lossy();
        let place = format!("sys/fs/cgroup/{}/cpu.max", group.trim_matches('/'));
        // "max 100000" has no number in front: no quota.
        if let [quota, period] = machine.numbers(&place)[..] {
            let hundredths = quota * 100 / period.max(1);
            tightest = Some(tightest.map_or(hundredths, |least: u64| least.min(hundredths)));
        }
    }
    tightest
}

/// CUBIC for the profile `modern`; Reno is in every kernel.
fn congestion(machine: &Machine) -> Check {
    let topic = about(
        "congestion control",
        "the profile `modern`, which uses cubic",
    );
    let list =
        |name: &str| machine.text(&format!("proc/sys/net/ipv4/tcp_{name}_congestion_control"));
    let available = list("available").unwrap_or_default();
    let value = format!(
        "available: {available}; allowed to all: {}",
        list("allowed").unwrap_or_default()
    );
    if available.split_whitespace().any(|name| name == "cubic") {
        // A route may ask for what programs are not allowed to.
        topic.ok(value)
    } else {
        topic.limited(
            value,
            "as root: modprobe tcp_cubic; or --profile era, which uses reno",
        )
    }
}

/// Memory that can be had.
fn memory(machine: &Machine) -> Check {
    let topic = about(
        "memory",
        "frames under way (up to 512 MiB) and the programs of the hosts",
    );
    let text = machine.text("proc/meminfo").unwrap_or_default();
    let mebibytes = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        let number: u64 = line.split_whitespace().next()?.parse().ok()?;
        Some(number / 1024)
    };
    match (mebibytes("MemAvailable:"), mebibytes("MemTotal:")) {
        (Some(free), Some(all)) => topic.judge(
            free >= MEMORY_MIB,
            format!("{free} of {all} MiB available"),
            "end other programs; fewer hosts; slower networks hold less under way",
        ),
        _ => topic.limited("/proc/meminfo does not report it", "mount /proc"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Status;
    use crate::doctor::machine::tests::Tree;
    use rustix::io::Errno;
    use sonde_sys::namespace::SubIds;

    fn told(check: &Check) -> (Status, &str) {
        (check.status, check.remedy.as_deref().unwrap_or(""))
    }

    #[test]
    fn obstacles_give_their_commands() {
        let program = Path::new("/opt/sonde");
        let check = |obstacle| namespaces(&Ok(Some(obstacle)), program);
        for (obstacle, command) in [
            (
                Obstacle::CloneDisabled,
                "sysctl -w kernel.unprivileged_userns_clone=1",
            ),
            (
                Obstacle::LimitZero,
                "sysctl -w user.max_user_namespaces=15000",
            ),
            (
                Obstacle::AppArmor,
                "profile sonde /opt/sonde flags=(unconfined)",
            ),
            (Obstacle::Seccomp(Errno::PERM), "seccomp=unconfined"),
        ] {
            let found = check(obstacle);
            assert_eq!(found.status, Status::Missing);
            assert!(
                found.remedy.as_ref().unwrap().contains(command),
                "{found:?}"
            );
            assert!(!found.value.contains(command), "said once: {found:?}");
        }
        assert_eq!(namespaces(&Ok(None), program).status, Status::Ok);
    }

    #[test]
    fn limits_are_named() {
        let tree = |net: &str| {
            Tree::of(&[
                ("proc/sys/user/max_user_namespaces", "96000\n"),
                ("proc/sys/user/max_net_namespaces", net),
            ])
        };
        assert_eq!(limits(&tree("18\n").machine).status, Status::Ok);
        let few = limits(&tree("3\n").machine);
        assert_eq!(
            told(&few),
            (
                Status::Limited,
                "as root: sysctl -w user.max_net_namespaces=15000"
            )
        );
        assert_eq!(limits(&Tree::of(&[]).machine).status, Status::Ok);
    }

    #[test]
    fn tun_is_told_from_what_it_is_not() {
        let (status, remedy) = (Status::Limited, "mknod -m 666 /dev/net/tun c 10 200");
        for tree in [Tree::of(&[]), Tree::of(&[("dev/net/tun", "")])] {
            let check = tun(&tree.machine);
            assert!(check.status == status && check.remedy.unwrap().contains(remedy));
            assert!(check.value.contains("veth"));
        }
    }

    #[test]
    fn id_ranges_are_for_ordinary_users() {
        let range = vec![SubIds {
            first: 100_000,
            count: 65_536,
        }];
        let ranges = SubIdRanges {
            uid: range.clone(),
            gid: range,
        };
        let mut bare = Tree::of(&[("usr/bin/apt-get", "")]);
        let found = ids(&bare.machine, &ranges);
        assert_eq!(
            told(&found),
            (Status::Limited, "as root: apt-get install uidmap")
        );
        bare.machine.uid = 0;
        assert_eq!(
            ids(&bare.machine, &SubIdRanges::default()).status,
            Status::Ok
        );
        let tree = Tree::of(&[("usr/bin/newuidmap", ""), ("usr/bin/newgidmap", "")]);
        assert_eq!(ids(&tree.machine, &ranges).value, "65537 by newuidmap");
        let none = ids(&tree.machine, &SubIdRanges::default());
        assert!(none.remedy.unwrap().contains("--add-subuids 100000-165535"));
    }

    #[test]
    fn processors_and_quotas() {
        let bare = Tree::of(&[
            ("proc/self/cgroup", "0::/\n"),
            ("sys/fs/cgroup/cpu.max", "max 100000"),
        ]);
        assert_eq!(processors(&bare.machine, 2).status, Status::Ok);
        assert!(processors(&bare.machine, 1).value.contains("share"));
        let tree = Tree::of(&[
            ("proc/self/cgroup", "1:name=systemd:/\n0::/jobs/one\n"),
            ("sys/fs/cgroup/jobs/cpu.max", "150000 100000\n"),
            ("sys/fs/cgroup/jobs/one/cpu.max", "max 100000\n"),
        ]);
        let held = processors(&tree.machine, 8);
        assert!(
            held.status == Status::Limited && held.value.contains("1.50 of them"),
            "{held:?}"
        );
        assert!(held.remedy.unwrap().contains("cpu.max"));
    }

    #[test]
    fn cubic_and_memory() {
        let tree = |available: &str, free: &str| {
            Tree::of(&[
                (
                    "proc/sys/net/ipv4/tcp_available_congestion_control",
                    available,
                ),
                ("proc/sys/net/ipv4/tcp_allowed_congestion_control", "reno"),
                (
                    "proc/meminfo",
                    &format!("MemTotal: 4194304 kB\nMemFree: 1 kB\nMemAvailable: {free} kB\n"),
                ),
            ])
        };
        let good = tree("reno cubic", "2097152");
        assert_eq!(
            congestion(&good.machine).value,
            "available: reno cubic; allowed to all: reno"
        );
        assert_eq!(memory(&good.machine).value, "2048 of 4096 MiB available");
        let poor = tree("reno", "102400");
        assert!(
            congestion(&poor.machine)
                .remedy
                .unwrap()
                .contains("modprobe tcp_cubic")
        );
        assert_eq!(memory(&poor.machine).status, Status::Limited);
        assert_eq!(memory(&Tree::of(&[]).machine).status, Status::Limited);
    }
}
