//! Time: the clock, what reading it costs, how late a sleep ends, and what takes the processor away.
//!
//! Model:   the lab sleeps to 60 us before a deadline and spins from there: a sleep that ends later than that makes a frame
//!          late. Stolen time since boot is the `steal` column of /proc/stat over all columns but guest time, which is in user
//!          time. How late sleeps end and what is stolen now are of the same look at the machine as the noise.
//! Source:  proc_stat(5), Documentation/admin-guide/pm/cpufreq.rst.
//! Units:   ns, but us for people.
//! Checked: `clock_sources`, `late_sleeps_are_judged`, `stolen_time_is_a_share`, `governors`, `virtual_machines`.

use super::machine::Machine;
use super::noise::{self, NoiseReport};
use super::{Check, Group, Topic, topic};
use sonde_sys::clock::monotonic_ns;
use sonde_sys::noise::{Cause, STOLEN_SHARE_MAX};
use std::collections::BTreeMap;

/// Sources that are read without a system call.
const QUICK_SOURCES: [&str; 5] = [
    "tsc",
    "kvm-clock",
    "arch_sys_counter",
    "hyperv_clocksource_tsc_page",
    "timebase",
];
/// The lab spins over the last of its waits.
const SPIN_NS: u64 = 60_000;
/// Later than this, another program had the processor.
const PREEMPTED_NS: u64 = 1_000_000;
/// A clock that costs more is read by a system call.
const READING_NS: u64 = 200;

fn about(name: &str, needed_for: &str) -> Topic {
    topic(Group::Time, name, needed_for)
}

/// All checks of time; `seen` is how disturbed the machine is.
pub fn checks(machine: &Machine, seen: &NoiseReport) -> Vec<Check> {
    vec![
        source(machine),
        reading(),
        super::paths::counter(),
        sleeping(seen),
        noise::check(seen),
        stolen(machine.text("proc/stat").as_deref(), seen),
        governor(machine),
        machine_kind(machine),
    ]
}

/// The kernel's clock source.
fn source(machine: &Machine) -> Check {
    let topic = about("clock source", "times stamped in tens of ns");
    let read = |name: &str| {
        machine.text(&format!(
            "sys/devices/system/clocksource/clocksource0/{name}"
        ))
    };
    let Some(current) = read("current_clocksource") else {
        return topic.limited("not reported", "mount /sys");
    };
    let quick = QUICK_SOURCES.contains(&current.as_str());
    let available = read("available_clocksource").unwrap_or_default();
    let better = available
        .split_whitespace()
        .find(|name| QUICK_SOURCES.contains(name));
    let remedy = match better {
        Some(name) => format!(
            "as root: echo {name} > /sys/devices/system/clocksource/clocksource0/current_clocksource"
        ),
        None => "look for \"clocksource\" in dmesg: the kernel says why it left the processor's own counter".into(),
    };
    topic.judge(quick, current, remedy)
}

/// What reading the clock costs, and the smallest step that was seen.
fn reading() -> Check {
    const READINGS: u64 = 1_000;
    let batch = |_| {
        let begin = monotonic_ns();
        (1..READINGS).for_each(|_| {
            std::hint::black_box(monotonic_ns());
        });
        (monotonic_ns() - begin) / READINGS
    };
    let cost = (0..100).map(batch).min().unwrap_or(0);
    let step = (0..10_000).filter_map(|_| {
        let begin = monotonic_ns();
        Some(monotonic_ns() - begin).filter(|step| *step > 0)
    });
    let step = step.min().unwrap_or(0);
    about(
        "reading the clock",
        "time stamps that cost less than the times that they measure",
    )
    .judge(
        cost <= READING_NS,
        format!("{cost} ns each; smallest step seen {step} ns"),
        "another clock source, see above; under valgrind, gdb or gVisor: run without",
    )
}

/// How late sleeps of 1 ms end.
fn sleeping(seen: &NoiseReport) -> Check {
    let topic = about("sleeping", "frames of the lab that leave on schedule");
    let idle = "end other programs; on a virtual machine an idle processor wakes late (idle=poll or cpuidle_haltpoll help)";
    let (p50, p99) = match seen {
        Ok(noise) => (noise.wake_late_ns_p50, noise.wake_late_ns_p99),
        Err(why) => return topic.limited(why, idle),
    };
    topic.judge(
        p50 <= SPIN_NS && p99 <= PREEMPTED_NS,
        format!(
            "ends late by {} us (median), {} us (p99)",
            p50 / 1_000,
            p99 / 1_000
        ),
        idle,
    )
}

/// All ticks and stolen ones.
fn ticks(stat: &str) -> Option<(u64, u64)> {
    let columns: Vec<u64> = stat
        .lines()
        .next()?
        .strip_prefix("cpu ")?
        .split_whitespace()
        .map_while(|word| word.parse().ok())
        .collect();
    Some((columns.iter().take(8).sum(), *columns.get(7)?))
}

/// Processor time that went to others on the same hardware: since boot by `stat`, and now.
fn stolen(stat: Option<&str>, seen: &NoiseReport) -> Check {
    let topic = about("stolen time", "figures that describe this machine alone");
    let Some((all, stolen)) = stat.and_then(ticks) else {
        return topic.limited("/proc/stat cannot be read", "mount /proc");
    };
    let since_boot = stolen as f64 / all.max(1) as f64;
    let mut value = format!("{:.2} % since boot", since_boot * 100.0);
    let mut is_little = since_boot <= STOLEN_SHARE_MAX;
    if let Ok(noise) = seen {
        if let Some(now) = noise.stolen_share {
            value += &format!(", {:.1} % now", now * 100.0);
            let is_stolen = |found: &Cause| matches!(found, Cause::Stolen { .. });
            is_little = !noise.causes().iter().any(is_stolen);
        }
    }
    topic.judge(
        is_little,
        value,
        "ask for processors of your own (dedicated, pinned), or measure at another hour; runs record it",
    )
}

/// Who sets the processors' frequency.
fn governor(machine: &Machine) -> Check {
    let topic = about("frequency governor", "CPU costs and latencies that repeat");
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for name in machine.names("sys/devices/system/cpu") {
        let path = format!("sys/devices/system/cpu/{name}/cpufreq/scaling_governor");
        if let Some(governor) = machine.text(&path) {
            *found.entry(governor).or_default() += 1;
        }
    }
    if found.is_empty() {
        return topic.ok("none here: firmware or the hypervisor sets the frequency");
    }
    let list: Vec<String> = found
        .iter()
        .map(|(governor, count)| format!("{governor} on {count}"))
        .collect();
    topic.judge(
        found.keys().all(|governor| governor == "performance"),
        list.join(", "),
        "as root: echo performance | tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
    )
}

/// Whether this is a virtual machine.
fn machine_kind(machine: &Machine) -> Check {
    let topic = about("machine", "knowing which hardware the figures describe");
    let maker: Vec<String> = ["sys_vendor", "product_name"]
        .iter()
        .filter_map(|name| machine.text(&format!("sys/class/dmi/id/{name}")))
        .collect();
    let maker = maker.join(" ");
    let flagged = machine.text("proc/cpuinfo").is_some_and(|text| {
        let flags = text.lines().find(|line| line.starts_with("flags"));
        flags.is_some_and(|line| line.split_whitespace().any(|flag| flag == "hypervisor"))
    });
    let hypervisor = machine.text("sys/hypervisor/type");
    let known = [
        "QEMU",
        "KVM",
        "VMware",
        "VirtualBox",
        "Virtual Machine",
        "Amazon EC2",
        "Google",
        "OpenStack",
    ];
    let named = known.iter().any(|name| maker.contains(name)) && !maker.contains("metal");
    if flagged || named || hypervisor.is_some() {
        let by = [hypervisor.unwrap_or_default(), maker].join(" ");
        let by = match by.trim() {
            "" => String::new(),
            by => format!(" ({by})"),
        };
        return topic.limited(
            format!("virtual{by}"),
            "compare figures within a run; for absolute ones run sonde on the hardware itself",
        );
    }
    topic.ok(if maker.is_empty() {
        "no hypervisor seen".into()
    } else {
        maker
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Status;
    use crate::doctor::machine::tests::Tree;

    #[test]
    fn clock_sources() {
        let tree = |current, available| {
            let folder = "sys/devices/system/clocksource/clocksource0";
            let names = ["current", "available"].map(|name| format!("{folder}/{name}_clocksource"));
            source(&Tree::of(&[(&names[0], current), (&names[1], available)]).machine)
        };
        assert_eq!(tree("tsc\n", "tsc hpet").status, Status::Ok);
        let hpet = tree("hpet\n", "hpet tsc acpi_pm\n").remedy.unwrap();
        assert!(hpet.starts_with("as root: echo tsc >"), "{hpet}");
        assert!(
            tree("hpet", "hpet acpi_pm")
                .remedy
                .unwrap()
                .contains("dmesg")
        );
    }

    #[test]
    fn late_sleeps_are_judged() {
        let judged = |p50, p99| sleeping(&Ok(noise::tests::made_up(p50, p99)));
        let good = judged(38_000, 49_000);
        assert_eq!(
            (good.status, good.value.as_str()),
            (Status::Ok, "ends late by 38 us (median), 49 us (p99)")
        );
        assert_eq!(judged(90_000, 95_000).status, Status::Limited);
        assert_eq!(judged(30_000, 4_000_000).status, Status::Limited);
        let unseen = sleeping(&Err("not finished within 10 s".into()));
        assert_eq!(
            (unseen.status, unseen.value.as_str()),
            (Status::Limited, "not finished within 10 s")
        );
    }

    #[test]
    fn stolen_time_is_a_share() {
        // user nice system idle iowait irq softirq steal guest guest_nice
        let stat = "cpu  200 0 0 800 0 0 0 100 9 0\ncpu0 1";
        let now = |share| {
            let mut noise = noise::tests::made_up(40_000, 90_000);
            noise.stolen_share = share;
            stolen(Some(stat), &Ok(noise))
        };
        let none = now(Some(0.0));
        assert_eq!(
            (none.status, none.value.as_str()),
            (Status::Ok, "9.09 % since boot, 0.0 % now")
        );
        let much = now(Some(0.1));
        assert_eq!(
            (much.status, much.value.as_str()),
            (Status::Limited, "9.09 % since boot, 10.0 % now")
        );
        // Where nothing is known of now, the past is judged.
        for unknown in [now(None), stolen(Some(stat), &Err("no threads".into()))] {
            assert_eq!(
                (unknown.status, unknown.value.as_str()),
                (Status::Limited, "9.09 % since boot")
            );
        }
        let untold = stolen(Some("nothing"), &Err("no threads".into()));
        assert_eq!(untold.value, "/proc/stat cannot be read");
    }

    #[test]
    fn governors() {
        let path = |cpu| format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
        let tree = |second| {
            governor(&Tree::of(&[(&path(0), "performance\n"), (&path(1), second)]).machine)
        };
        assert_eq!(tree("performance").value, "performance on 2");
        let saving = tree("powersave");
        assert_eq!(saving.value, "performance on 1, powersave on 1");
        assert!(saving.remedy.unwrap().contains("echo performance"));
        assert_eq!(governor(&Tree::of(&[]).machine).status, Status::Ok);
    }

    #[test]
    fn virtual_machines() {
        let dmi = |vendor, product| {
            let files = [
                ("sys/class/dmi/id/sys_vendor", vendor),
                ("sys/class/dmi/id/product_name", product),
            ];
            machine_kind(&Tree::of(&files).machine)
        };
        assert_eq!(
            dmi("Dell Inc.\n", "PowerEdge R640\n").value,
            "Dell Inc. PowerEdge R640"
        );
        assert_eq!(
            dmi("QEMU", "Standard PC").value,
            "virtual (QEMU Standard PC)"
        );
        assert_eq!(dmi("Amazon EC2", "m5.metal").status, Status::Ok);
        let flagged = Tree::of(&[(
            "proc/cpuinfo",
            "processor : 0\nflags\t\t: fpu hypervisor sse\n",
        )]);
        assert_eq!(machine_kind(&flagged.machine).value, "virtual");
    }
}
