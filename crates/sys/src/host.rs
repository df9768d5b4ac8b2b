//! What a host is and what it does: its name, CPU, memory, clock, and the CPU time of all that runs on it.
//!
//! Model:   a reading of a file of /proc or /sys; what a kernel does not tell is `None`, never a guess.
//! Source:  proc(5); Documentation/filesystems/proc.rst §1.7 for /proc/stat; include/uapi/linux/ethtool.h.
//! Units:   nanoseconds, bytes, bits a second. /proc/stat counts in ticks, usually of 10 ms: sums over less are coarse.
//! Checked: unit tests below.

use std::os::fd::AsRawFd;

use rustix::net::{AddressFamily, SocketType};

use crate::Result;
use crate::clock::monotonic_ns;
use crate::error::{Attempt, checked, read_text};

/// CPU time of a whole host since it started, all CPUs together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// In use: by programs, the kernel and its interrupts; not idle, not waiting, not taken away.
    pub busy_ns: u64,
    /// Taken away by a hypervisor.
    pub steal_ns: u64,
}

/// What no other network namespace has, on this boot or any other: the boot's id, and the cookie of the namespace, which
/// is never given twice (Linux 5.14; before that the number of its file, which is).
pub fn network_identity() -> Result<String> {
    let boot = read_text("/proc/sys/kernel/random/boot_id")?;
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None)
        .attempt(|| "open a socket".into())?;
    let mut cookie = 0_u64;
    let mut length = size_of::<u64>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `cookie`, which has them.
    let asked = checked(unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &mut length,
        )
    });
    let space = match asked {
        Ok(_) => cookie.to_string(),
        Err(_) => std::fs::read_link("/proc/self/ns/net")
            .map(|space| space.display().to_string())
            .unwrap_or_default(),
    };
    Ok(format!("{} {space}", boot.trim()))
}

/// Asks for the cookie of a socket's network namespace (asm-generic/socket.h).
const SO_NETNS_COOKIE: libc::c_int = 71;

/// The CPU time of this host; `None` where /proc/stat cannot be read.
pub fn cpu_times() -> Option<CpuTimes> {
    let text = read_text("/proc/stat").ok()?;
    parse_cpu_times(&text, "cpu", tick_ns())
}

/// The CPU time of these CPUs of this host together; `None` where /proc/stat cannot be read or does not list one of them.
pub fn cpu_times_of(cpus: &[usize]) -> Option<CpuTimes> {
    let text = read_text("/proc/stat").ok()?;
    sum_cpu_times(&text, cpus, tick_ns())
}

/// In what /proc/stat counts: usually 10 ms.
pub fn tick_ns() -> u64 {
    // SAFETY: no pointers.
    let ticks_per_s = u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).unwrap_or(100);
    1_000_000_000 / ticks_per_s.max(1)
}

fn sum_cpu_times(text: &str, cpus: &[usize], tick_ns: u64) -> Option<CpuTimes> {
    let mut sum = CpuTimes::default();
    for cpu in cpus {
        let one = parse_cpu_times(text, &format!("cpu{cpu}"), tick_ns)?;
        sum.busy_ns += one.busy_ns;
        sum.steal_ns += one.steal_ns;
    }
    Some(sum)
}

/// The line whose first word is `name`.
fn parse_cpu_times(text: &str, name: &str, tick_ns: u64) -> Option<CpuTimes> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    let ticks: Vec<u64> = line
        .split_whitespace()
        .map_while(|word| word.parse().ok())
        .collect();
    // user nice system idle iowait irq softirq steal; guests are within user and nice.
    let [user, nice, system, _, _, irq, softirq, steal] = *ticks.get(..8)? else {
        return None;
    };
    Some(CpuTimes {
        busy_ns: (user + nice + system + irq + softirq) * tick_ns,
        steal_ns: steal * tick_ns,
    })
}

/// What this host's UDP lost, as its network namespace counts it since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UdpTroubles {
    /// Datagrams received for which a socket had no room.
    pub rcvbuf_errors: u64,
    /// Datagrams to be sent for which there was no room.
    pub sndbuf_errors: u64,
    /// Datagrams received for a port that nobody has open.
    pub no_ports: u64,
    /// Datagrams received that were broken, or for which a socket had no room.
    pub in_errors: u64,
}

/// What UDP lost on this host; `None` where /proc/net/snmp cannot be read.
pub fn udp_troubles() -> Option<UdpTroubles> {
    // Of this thread's namespace, whoever mounted /proc.
    parse_udp_troubles(&read_text("/proc/thread-self/net/snmp").ok()?)
}

fn parse_udp_troubles(text: &str) -> Option<UdpTroubles> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Udp:"));
    let (names, values) = (lines.next()?, lines.next()?);
    let value = |wanted: &str| {
        let at = names.split_whitespace().position(|name| name == wanted)?;
        values.split_whitespace().nth(at)?.parse().ok()
    };
    Some(UdpTroubles {
        rcvbuf_errors: value("RcvbufErrors")?,
        sndbuf_errors: value("SndbufErrors")?,
        no_ports: value("NoPorts")?,
        in_errors: value("InErrors")?,
    })
}

/// The name of this host, and its kernel's release.
pub fn names() -> (String, String) {
    let names = rustix::system::uname();
    let text = |name: &std::ffi::CStr| name.to_string_lossy().into_owned();
    (text(names.nodename()), text(names.release()))
}

/// CPUs online, whether or not this program may use them.
pub fn cpus() -> u64 {
    // SAFETY: no pointers.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) })
        .unwrap_or(1)
        .max(1)
}

/// The CPU's model.
pub fn cpu_model() -> Option<String> {
    let text = read_text("/proc/cpuinfo").ok()?;
    let value = |wanted: &str| {
        text.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            (name.trim() == wanted).then(|| value.trim().to_string())
        })
    };
    // x86; POWER; s390 and others name the machine.
    value("model name")
        .or_else(|| value("cpu"))
        .or_else(|| value("Model"))
}

/// Main memory.
pub fn memory_bytes() -> Option<u64> {
    memory("MemTotal:")
}

/// Main memory that programs can have now without anything being swapped out, as the kernel reckons it; no more than the control
/// groups of this process let it have still.
pub fn memory_available_bytes() -> Option<u64> {
    let available = memory("MemAvailable:")?;
    Some(crate::memory::left_in_groups().map_or(available, |left| left.min(available)))
}

fn memory(name: &str) -> Option<u64> {
    let text = read_text("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// Bits a second that the kernel copies from one program's buffer to another's: pieces of `bytes` through a pair of sockets,
/// each written and read, for `span`. `None` where there is no pair of sockets.
///
/// Each byte is copied twice, in and out; it is counted once, as a stream's is.
pub fn copy_bps(bytes: usize, span: std::time::Duration) -> Option<u64> {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    let (mut near, mut far) = UnixStream::pair().ok()?;
    // What the buffer does not take is not waited for: nobody else would read it. It is as large as the host allows.
    near.set_nonblocking(true).ok()?;
    drop(crate::socket::set_send_buffer(&near, 2 * bytes));
    let (from, mut to) = (vec![0x5a; bytes], vec![0; bytes]);
    let begin_ns = monotonic_ns();
    let mut copied = 0_u64;
    loop {
        let taken = near.write(&from).ok()?;
        far.read_exact(&mut to[..taken]).ok()?;
        copied += taken as u64;
        let took_ns = monotonic_ns() - begin_ns;
        if u128::from(took_ns) >= span.as_nanos() {
            return u64::try_from(u128::from(copied) * 8_000_000_000 / u128::from(took_ns)).ok();
        }
    }
}

/// TCP connections of this network namespace with other hosts, by IPv4; `None` where they are not told.
pub fn established() -> Option<usize> {
    Some(parse_established(&read_text("/proc/net/tcp").ok()?))
}

fn parse_established(text: &str) -> usize {
    let of = |line: &&str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        // The address is in the host's order: loopback ends with 7F on little-endian ones and begins so on others.
        let loopback = |address: &str| {
            let end = if cfg!(target_endian = "little") {
                6..8
            } else {
                0..2
            };
            address.get(end) == Some("7F")
        };
        matches!(words[..], [_, local, _, "01", ..] if !loopback(local))
    };
    text.lines().skip(1).filter(of).count()
}

/// The CPUs that serve an interface's interrupts: those with a tenth or more of all, of every line of /proc/interrupts that
/// names it; empty where none does.
pub fn interrupt_cpus(interface: &str) -> Vec<usize> {
    read_text("/proc/interrupts")
        .map_or_else(|_| Vec::new(), |text| parse_interrupts(&text, interface))
}

fn parse_interrupts(text: &str, interface: &str) -> Vec<usize> {
    let mut lines = text.lines();
    let cpus = lines
        .next()
        .map_or(0, |head| head.split_whitespace().count());
    let mut sums = vec![0_u64; cpus];
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        let of = |word: &&str| word.split([',', '-', '@']).any(|part| part == interface);
        if !words.iter().skip(1 + cpus).any(of) {
            continue;
        }
        let counts = words.iter().skip(1).take(cpus);
        for (sum, count) in sums.iter_mut().zip(counts) {
            *sum += count.parse::<u64>().unwrap_or(0);
        }
    }
    let all: u64 = sums.iter().sum();
    let serves = |cpu: &usize| all > 0 && sums[*cpu] * 10 >= all;
    (0..cpus).filter(serves).collect()
}

/// The kernel's clock source.
pub fn clock_source() -> Option<String> {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    Some(read_text(path).ok()?.trim().to_string())
}

/// What a clock is worth: CLOCK_MONOTONIC, or the time stamp counter ([`crate::tsc`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockWorth {
    /// The cost of one reading: the shortest mean of ten blocks.
    pub read_ns: u64,
    /// The smallest difference between two readings one after another that is not zero.
    pub resolution_ns: u64,
}

/// Reads the clock some 11,000 times, for about a quarter of a millisecond.
pub fn clock_worth() -> ClockWorth {
    worth_of(monotonic_ns)
}

/// What a clock is worth that is read so, in its own unit.
pub(crate) fn worth_of(now: impl Fn() -> u64) -> ClockWorth {
    const READS: u64 = 1_000;
    let block = |_| {
        let begin = now();
        for _ in 1..READS {
            std::hint::black_box(now());
        }
        (now() - begin) / READS
    };
    let read_ns = (0..10).map(block).min().unwrap_or(0);
    let step = |_| {
        let begin = now();
        let mut next = now();
        while next == begin {
            next = now();
        }
        next - begin
    };
    ClockWorth {
        read_ns,
        resolution_ns: (0..READS).map(step).min().unwrap_or(0),
    }
}

const SIOCETHTOOL: libc::c_ulong = 0x8946;
const ETHTOOL_GSET: u32 = 0x1;
const ETHTOOL_GDRVINFO: u32 = 0x3;
/// Drivers whose rate is an invention: a TAP says 10 Mbit/s and a veth 10 Gbit/s, whatever they carry.
const WITHOUT_RATE: [&str; 5] = ["tun", "veth", "bridge", "dummy", "virtio_net"];

/// The driver of an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Driver {
    /// Its name: `veth`, `tun`, `ixgbe`.
    pub name: String,
    /// Its version; of those that come with the kernel often the kernel's.
    pub version: String,
    /// The version of the card's firmware; empty where it says none.
    pub firmware: String,
}

/// The driver of an interface of the current network namespace; loopback has none.
pub fn driver(interface: &str) -> Option<Driver> {
    // struct ethtool_drvinfo: cmd, then three texts of 32 bytes.
    let information: [u8; 196] = ethtool(interface, ETHTOOL_GDRVINFO)?;
    let text = |at: usize| {
        let until_zero = information[at..at + 32].split(|&byte| byte == 0).next();
        String::from_utf8_lossy(until_zero.unwrap_or_default()).into_owned()
    };
    Some(Driver {
        name: text(4),
        version: text(36),
        firmware: text(68),
    })
}

/// The line rate of an interface of the current network namespace; `None` where it has none, or its driver invents one.
pub fn line_bps(interface: &str) -> Option<u64> {
    // By ioctl, since /sys/class/net shows the namespace that mounted it.
    if WITHOUT_RATE.contains(&driver(interface)?.name.as_str()) {
        return None;
    }
    let settings: [u8; 44] = ethtool(interface, ETHTOOL_GSET)?;
    // struct ethtool_cmd: speed at 12, speed_hi at 28.
    let low = u16::from_ne_bytes([settings[12], settings[13]]);
    let high = u16::from_ne_bytes([settings[28], settings[29]]);
    let mbps = u32::from(high) << 16 | u32::from(low);
    // All ones: unknown; with only the low half the older way of saying so.
    (mbps != 0 && mbps != u32::MAX && mbps != u32::from(u16::MAX))
        .then(|| u64::from(mbps) * 1_000_000)
}

/// One of ethtool's commands that fill a structure of `N` bytes which begins with the command.
fn ethtool<const N: usize>(interface: &str, command: u32) -> Option<[u8; N]> {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None).ok()?;
    let mut structure = Aligned([0; N]);
    structure.0[..4].copy_from_slice(&command.to_ne_bytes());
    // SAFETY: ifreq is plain data for which zero is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if interface.len() >= request.ifr_name.len() {
        return None;
    }
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = (&raw mut structure).cast();
    // SAFETY: the request and the structure it points to live across the call; the two commands used fill 196 and 44
    // bytes, as the callers give.
    let status = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut request) };
    checked(status).ok()?;
    Some(structure.0)
}

#[repr(C, align(8))]
struct Aligned<const N: usize>([u8; N]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_times_are_sums_of_their_columns() {
        let text = "cpu  10 20 30 1000 500 1 2 4 3 3\ncpu1 1 2 3 4 5 6 7 8 9 10\ncpu11 1 0 0 0 0 0 0 2 0 0\n";
        let read = |text, name| parse_cpu_times(text, name, 10_000_000);
        let times = read(text, "cpu").unwrap();
        assert_eq!((times.busy_ns, times.steal_ns), (630_000_000, 40_000_000));
        assert_eq!(read("cpu  1 2 3 4\n", "cpu"), None);
        assert_eq!(read("intr 1 2 3\n", "cpu"), None);
        let of = |cpus: &[usize]| {
            let sum = sum_cpu_times(text, cpus, 10_000_000)?;
            Some((sum.busy_ns, sum.steal_ns))
        };
        assert_eq!(of(&[1]), Some((190_000_000, 80_000_000)));
        assert_eq!(of(&[1, 11]), Some((200_000_000, 100_000_000)));
        assert_eq!(of(&[0, 1]), None);
    }

    #[test]
    fn what_udp_lost_is_read_by_name() {
        let text = "Tcp: A B\nTcp: 1 2\nUdp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors\n\
                    Udp: 10 1 5 20 4 3\nUdpLite: NoPorts\nUdpLite: 9\n";
        let found = parse_udp_troubles(text).unwrap();
        assert_eq!((found.no_ports, found.in_errors), (1, 5));
        assert_eq!((found.rcvbuf_errors, found.sndbuf_errors), (4, 3));
        assert_eq!(parse_udp_troubles("Udp: NoPorts\nUdp: 1\n"), None);
        assert!(udp_troubles().is_some());
    }

    #[test]
    fn the_kernel_copies() {
        let span = std::time::Duration::from_millis(5);
        let bps = copy_bps(64 << 10, span).unwrap();
        // Ten thousandfold below and above what machines of these days do.
        assert!((1_000_000..1_000_000_000_000_000).contains(&bps), "{bps}");
    }

    #[test]
    fn copies_are_told_in_bits() {
        use std::io::{Read, Write};
        let (bytes, span) = (4 << 10, std::time::Duration::from_millis(5));
        // The same by hand; the best of several, since others may have the CPU in between.
        let by_hand = || {
            let (mut near, mut far) = std::os::unix::net::UnixStream::pair().unwrap();
            let (begin, mut piece, mut bits) = (std::time::Instant::now(), vec![0; bytes], 0.0);
            while begin.elapsed() < span {
                near.write_all(&piece).unwrap();
                far.read_exact(&mut piece).unwrap();
                bits += 8.0 * bytes as f64;
            }
            bits / begin.elapsed().as_secs_f64()
        };
        let own = (0..10).map(|_| by_hand()).fold(0.0, f64::max);
        let told = (0..10).filter_map(|_| copy_bps(bytes, span)).max().unwrap();
        // Bytes for bits would be an eighth.
        assert!((0.3..3.5).contains(&(told as f64 / own)), "{told} of {own}");
    }

    #[test]
    fn connections_with_others_are_counted() {
        let text = "  sl  local_address rem_address   st\n\
                    \x20  0: 0100007F:1F90 0100007F:0016 01 00000000\n\
                    \x20  1: 0700A8C0:0016 0100A8C0:C350 01 00000000\n\
                    \x20  2: 00000000:0016 00000000:0000 0A 00000000\n";
        assert_eq!(parse_established(text), 1);
    }

    #[test]
    fn interrupts_are_of_their_interface() {
        let text = "           CPU0       CPU1\n\
                    \x20 24:     900          3   PCI-MSI 1-edge      eth0-rx-0\n\
                    \x20 25:       5        800   PCI-MSI 2-edge      eth1-TxRx-0\n\
                    \x20NMI:       1          1   Non-maskable interrupts\n";
        assert_eq!(parse_interrupts(text, "eth0"), [0]);
        assert_eq!(parse_interrupts(text, "eth1"), [1]);
        assert_eq!(parse_interrupts(text, "lo"), [0; 0]);
    }

    #[test]
    fn work_is_seen() {
        let before = cpu_times().unwrap();
        let begin = monotonic_ns();
        while monotonic_ns() - begin < 60_000_000 {
            std::hint::spin_loop();
        }
        let after = cpu_times().unwrap();
        assert!(after.busy_ns > before.busy_ns || after.steal_ns > before.steal_ns);
    }

    #[test]
    fn this_host_has_facts() {
        let (name, kernel) = names();
        assert!(!name.is_empty() && kernel.contains('.'));
        assert!(cpus() >= 1 && memory_bytes().unwrap() > 1 << 20);
        let worth = clock_worth();
        assert!(worth.resolution_ns > 0, "{worth:?}");
        assert_eq!(
            (line_bps("lo"), line_bps("no such interface")),
            (None, None)
        );
    }
}
