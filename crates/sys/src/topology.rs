//! Where this machine's CPUs are: their caches, cores and memory nodes; and which of them serve an interface.
//!
//! Model:   readings of /sys and /proc below a root folder; what they do not tell is `None` or empty, never a guess. The CPUs
//!          that take an interface's packets off are those that its receive queues are steered to (rps_cpus), else those that
//!          its interrupts go to (effective_affinity_list, smp_affinity_list). An interface without a device has no
//!          interrupts: its packets are worked on where they were sent.
//! Source:  Documentation/ABI/testing/sysfs-devices-system-cpu, sysfs-class-net-queues; Documentation/core-api/irq/irq-affinity.rst;
//!          Documentation/networking/scaling.rst.
//! Units:   bytes; CPU and node numbers as Linux counts them.
//! Checked: `lists_are_read`, `a_made_up_machine_is_read`, `this_machine_has_cpus`.

use std::path::{Path, PathBuf};

/// A cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cache {
    /// 1 is next to the core.
    pub level: u32,
    /// Its size, of the part that one CPU sees.
    pub bytes: u64,
}

/// A machine as its files tell it.
#[derive(Debug, Clone)]
pub struct Topology {
    root: PathBuf,
}

/// Numbers of a list as `0-3,8`; those that are none are left out.
fn listed(text: &str) -> Vec<usize> {
    let parts = text.trim().split(',').filter(|part| !part.is_empty());
    parts
        .filter_map(|part| {
            let (low, high) = part.split_once('-').unwrap_or((part, part));
            let (low, high): (usize, usize) = (low.parse().ok()?, high.parse().ok()?);
            (high < 65_536).then_some(low..=high)
        })
        .flatten()
        .collect()
}

/// CPUs of a mask as `00000000,0000000f`, the lowest last.
fn masked(text: &str) -> Vec<usize> {
    let words = text.trim().rsplit(',').enumerate();
    words
        .flat_map(|(place, word)| {
            let bits = u32::from_str_radix(word, 16).unwrap_or(0);
            (0..32).filter_map(move |bit| (bits >> bit & 1 == 1).then_some(32 * place + bit))
        })
        .collect()
}

fn size(text: &str) -> Option<u64> {
    let (number, shift) = match text.trim() {
        text if text.ends_with('K') => (text.trim_end_matches('K'), 10),
        text if text.ends_with('M') => (text.trim_end_matches('M'), 20),
        text => (text, 0),
    };
    number
        .parse::<u64>()
        .ok()?
        .checked_shl(shift)
        .filter(|bytes| *bytes > 0)
}

/// The names in a folder, sorted; none where it cannot be read.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort_unstable();
    names
}

impl Topology {
    /// This machine.
    pub fn here() -> Self {
        Self::below("/")
    }

    /// The machine whose files are below `root`.
    pub fn below(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    fn text(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.root.join(path)).ok()
    }

    fn names(&self, path: impl AsRef<Path>) -> Vec<String> {
        names(&self.root.join(path))
    }

    fn caches(&self, cpu: usize) -> Vec<(Cache, String)> {
        let folder = format!("sys/devices/system/cpu/cpu{cpu}/cache");
        let names = self.names(&folder).into_iter();
        let all = names.filter_map(|name| {
            let read = |file: &str| self.text(&format!("{folder}/{name}/{file}"));
            let kind = read("type")?;
            let cache = Cache {
                level: read("level")?.trim().parse().ok()?,
                bytes: size(&read("size")?)?,
            };
            let shared = read("shared_cpu_list").unwrap_or_default();
            (kind.trim() != "Instruction").then_some((cache, shared))
        });
        all.collect()
    }

    /// The last-level cache that a CPU sees.
    pub fn last_level_cache(&self, cpu: usize) -> Option<Cache> {
        let caches = self.caches(cpu).into_iter();
        caches
            .map(|(cache, _)| cache)
            .max_by_key(|cache| cache.level)
    }

    /// The CPUs that share the last-level cache with `cpu`, itself among them; empty where that is not told.
    pub fn sharing(&self, cpu: usize) -> Vec<usize> {
        let last = self
            .caches(cpu)
            .into_iter()
            .max_by_key(|(cache, _)| cache.level);
        last.map(|(_, shared)| listed(&shared)).unwrap_or_default()
    }

    /// The CPUs that are threads of the same core as `cpu`, itself among them.
    pub fn threads(&self, cpu: usize) -> Vec<usize> {
        let path = format!("sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        self.text(&path).map_or(vec![cpu], |text| listed(&text))
    }

    /// All CPUs that are online.
    pub fn cpus(&self) -> Vec<usize> {
        let text = self.text("sys/devices/system/cpu/online");
        text.map(|text| listed(&text)).unwrap_or_default()
    }

    /// The nodes of memory that have CPUs, with these; one of all CPUs where the kernel has none.
    pub fn nodes(&self) -> Vec<(usize, Vec<usize>)> {
        let folder = "sys/devices/system/node";
        let names = self.names(folder).into_iter();
        let mut nodes: Vec<(usize, Vec<usize>)> = names
            .filter_map(|name| {
                let number = name.strip_prefix("node")?.parse().ok()?;
                let cpus = listed(&self.text(&format!("{folder}/{name}/cpulist"))?);
                (!cpus.is_empty()).then_some((number, cpus))
            })
            .collect();
        if nodes.is_empty() {
            nodes.push((0, self.cpus()));
        }
        nodes.sort_unstable();
        nodes
    }

    /// The node that an interface's device is next to; `None` where it has no device or one node is as near as another.
    pub fn node_of(&self, interface: &str) -> Option<usize> {
        let text = self.text(&format!("sys/class/net/{interface}/device/numa_node"))?;
        text.trim().parse().ok()
    }

    /// Whether an interface has a device, whose interrupts say that packets came.
    pub fn has_device(&self, interface: &str) -> bool {
        self.root
            .join(format!("sys/class/net/{interface}/device"))
            .exists()
    }

    /// The CPUs that take an interface's packets off, with how that is known; empty where nothing tells.
    pub fn serving(&self, interface: &str) -> (Vec<usize>, String) {
        let steered = self.steered(interface);
        if !steered.is_empty() {
            return (
                steered,
                format!("{interface}'s receive queues are steered there (rps_cpus)"),
            );
        }
        let lines = self.interrupts(interface);
        let mut cpus: Vec<usize> = lines.iter().flat_map(|line| self.affinity(*line)).collect();
        cpus.sort_unstable();
        cpus.dedup();
        let lines: Vec<String> = lines.iter().map(u32::to_string).collect();
        (
            cpus,
            format!("{interface}'s interrupts {} go there", lines.join(", ")),
        )
    }

    fn steered(&self, interface: &str) -> Vec<usize> {
        let folder = format!("sys/class/net/{interface}/queues");
        let queues = self.names(&folder).into_iter();
        let masks = queues.filter(|name| name.starts_with("rx-"));
        let mut cpus: Vec<usize> = masks
            .filter_map(|name| self.text(&format!("{folder}/{name}/rps_cpus")))
            .flat_map(|mask| masked(&mask))
            .collect();
        cpus.sort_unstable();
        cpus.dedup();
        cpus
    }

    /// The interrupts of an interface's receive queues: by its own name, or that of a paravirtual device.
    fn interrupts(&self, interface: &str) -> Vec<u32> {
        let device =
            std::fs::read_link(self.root.join(format!("sys/class/net/{interface}/device")));
        let device = device
            .ok()
            .and_then(|link| link.file_name()?.to_str().map(str::to_owned));
        let text = self.text("proc/interrupts").unwrap_or_default();
        let of = |line: &&str| {
            line.split_whitespace().any(|word| {
                let mut parts = word.split([',', '-', '@', '.', ':']);
                parts.clone().any(|part| part == interface)
                    || parts
                        .next()
                        .is_some_and(|part| Some(part) == device.as_deref())
            })
        };
        let lines: Vec<&str> = text.lines().filter(of).collect();
        // What only sends, or tells of settings, takes nothing off.
        let receives = |line: &&&str| {
            let line = line.to_ascii_lowercase();
            !["config", "output", "-tx-"]
                .iter()
                .any(|word| line.contains(word))
        };
        let receiving: Vec<&&str> = lines.iter().filter(receives).collect();
        let number = |line: &str| line.trim_start().split(':').next()?.parse().ok();
        receiving
            .into_iter()
            .filter_map(|line| number(line))
            .collect()
    }

    fn affinity(&self, line: u32) -> Vec<usize> {
        let read = |name: &str| {
            let text = self.text(&format!("proc/irq/{line}/{name}"))?;
            Some(listed(&text)).filter(|cpus| !cpus.is_empty())
        };
        read("effective_affinity_list")
            .or_else(|| read("smp_affinity_list"))
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read() {
        assert_eq!(listed("0-2,8\n"), [0, 1, 2, 8]);
        assert_eq!(listed("\n"), [0; 0]);
        assert_eq!(listed("x,3-1,5"), [5]);
        assert_eq!(masked("00000001,00000006\n"), [1, 2, 32]);
        assert_eq!(masked("0\n"), [0; 0]);
        for (text, bytes) in [
            ("32768K\n", Some(32 << 20)),
            ("1M", Some(1 << 20)),
            ("512", Some(512)),
            ("0K", None),
            ("many", None),
        ] {
            assert_eq!(size(text), bytes, "{text}");
        }
    }

    /// Files below a folder of this test's own.
    fn tree(name: &str, files: &[(&str, &str)]) -> (PathBuf, Topology) {
        let root = std::env::temp_dir().join(format!("sonde-{name}-{}", std::process::id()));
        for (path, text) in files {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        (root.clone(), Topology::below(root))
    }

    #[test]
    fn a_made_up_machine_is_read() {
        let cpu = "sys/devices/system/cpu";
        let cache = |index: usize, file: &str| format!("{cpu}/cpu1/cache/index{index}/{file}");
        let (l1, l3) = (0, 2);
        let (root, machine) = tree(
            "topology",
            &[
                (&format!("{cpu}/online"), "0-7\n"),
                (&cache(l1, "type"), "Data\n"),
                (&cache(l1, "level"), "1\n"),
                (&cache(l1, "size"), "32K\n"),
                (&cache(l3, "type"), "Unified\n"),
                (&cache(l3, "level"), "3\n"),
                (&cache(l3, "size"), "16M\n"),
                (&cache(l3, "shared_cpu_list"), "0-3\n"),
                (
                    &format!("{cpu}/cpu1/topology/thread_siblings_list"),
                    "1,5\n",
                ),
                ("sys/devices/system/node/node0/cpulist", "0-3\n"),
                ("sys/devices/system/node/node1/cpulist", "4-7\n"),
                ("sys/devices/system/node/node2/cpulist", "\n"),
                ("sys/class/net/eth0/device/numa_node", "1\n"),
                ("sys/class/net/eth0/queues/rx-0/rps_cpus", "00\n"),
                ("sys/class/net/eth1/queues/rx-0/rps_cpus", "0c\n"),
                (
                    "proc/interrupts",
                    "      CPU0 CPU1\n 24: 9 9 PCI-MSI 1-edge eth0-rx-0\n 25: 1 1 PCI-MSI 2-edge eth0-tx-0\n\
                     26: 1 1 PCI-MSI 3-edge eth10-rx-0\n",
                ),
                ("proc/irq/24/smp_affinity_list", "0-7\n"),
                ("proc/irq/24/effective_affinity_list", "5\n"),
                ("proc/irq/25/smp_affinity_list", "2\n"),
            ],
        );
        let cache = machine.last_level_cache(1).unwrap();
        assert_eq!((cache.level, cache.bytes), (3, 16 << 20));
        assert_eq!(machine.last_level_cache(2), None);
        assert_eq!(machine.sharing(1), [0, 1, 2, 3]);
        assert_eq!(
            (machine.threads(1), machine.threads(9)),
            (vec![1, 5], vec![9])
        );
        let nodes = machine.nodes();
        assert_eq!(nodes, [(0, vec![0, 1, 2, 3]), (1, vec![4, 5, 6, 7])]);
        assert_eq!(
            (machine.node_of("eth0"), machine.node_of("lo")),
            (Some(1), None)
        );
        assert!(machine.has_device("eth0") && !machine.has_device("lo"));
        let (cpus, how) = machine.serving("eth0");
        assert!(
            cpus == [5] && how.contains("interrupts 24 go"),
            "{cpus:?} {how}"
        );
        let (cpus, how) = machine.serving("eth1");
        assert!(cpus == [2, 3] && how.contains("rps_cpus"), "{cpus:?} {how}");
        assert_eq!(machine.serving("lo").0, [0; 0]);
        std::fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn this_machine_has_cpus() {
        let here = Topology::here();
        let cpus = here.cpus();
        assert!(!cpus.is_empty());
        let nodes = here.nodes();
        assert!(!nodes.is_empty() && nodes.iter().all(|(_, of)| !of.is_empty()));
        assert!(here.threads(cpus[0]).contains(&cpus[0]));
        assert!(!here.has_device("lo"));
    }
}
