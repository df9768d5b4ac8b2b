//! Strangers at the ports of a measurement, from a host that has no part in it and from the measuring host itself.
//!
//! Model:   h1 is the user's machine; h2 and h3 run Debian's sshd and are measured, each conversation once alone and once among
//!          strangers on h4 and on h2. Those connect to each port as it opens, up to COUNT times each, and say nothing, nonsense,
//!          half of another conversation's hello, all of it, or a byte at a time; datagrams are of the same kinds. Ports are read
//!          where they open, in the hosts' own tables of sockets.
//! Checked: none is answered; all that came are counted, but for those of a start-up's port that closes meanwhile; each figure
//!          that they met is uncertain; and an agent stays below 16 MiB.

use crate::lab;
use crate::lab::Stage;
use serde_json::Value;

/// The most that an agent may take.
const MEMORY_KIB: u64 = 16 << 10;

const SCRIPT: &str = r#"
set -eu
PATH=/run/sonde/bin:$PATH:/usr/sbin:/sbin
ssh_setup=SSHD keys=DIR/keys
mount -t tmpfs tmpfs /root && mkdir -m 700 /root/.ssh
sh "$ssh_setup" keys "$keys" h2 h3
cp "$keys/ssh_config" /root/.ssh/config
for host in h2 h3; do
    sonde lab exec --detach --root $host -- sh "$ssh_setup" serve "$keys" >/dev/null 2>&1
    until ssh -o BatchMode=yes $host true 2>/dev/null; do sleep 0.1; done
    sonde lab exec --detach --root $host -- python3 DIR/ports.py DIR/ports-$host DIR/memory-$host >/dev/null 2>&1
done
measure() {
    run=$1; shift
    code=0
    sonde probe "$@" --testbed hosts:h2,h3 --launches 2 --json --out DIR/runs-$run >DIR/$run.json 2>DIR/$run.err || code=$?
    echo "$run ended with $code"
    sonde report export --json --out DIR/runs-$run >DIR/$run.store
}
both() {
    name=$1; shift
    measure alone-$name "$@"
    rm -f DIR/stop
    for host in h4 h2; do
        sonde lab exec --root $host -- python3 DIR/strangers.py COUNT DIR >DIR/strangers-$name-$host &
    done
    measure among-$name "$@"
    touch DIR/stop
    wait
}
SCENES
"#;

/// Writes the data ports of this host to a file, again and again, and the most memory that an agent has had to another.
const PORTS: &str = r#"
import glob, os, sys, time
ports, memory = sys.argv[1:]
most, turn = 0, 0
def write(path, text):
    with open(path + ".new", "w") as file:
        file.write(text)
    os.rename(path + ".new", path)
def opened(name, state):
    for line in open("/proc/net/" + name).readlines()[1:]:
        words = line.split()
        address, port = words[1].split(":")
        if words[3] == state and words[2] == "00000000:0000" and address != "00000000" and address[6:] != "7F":
            yield "%s %s %d\n" % (name, ".".join(str(b) for b in reversed(bytes.fromhex(address))), int(port, 16))
while True:
    write(ports, "".join(list(opened("tcp", "0A")) + list(opened("udp", "07"))))
    turn += 1
    if turn % 100 == 0:
        for status in glob.glob("/proc/[0-9]*/status"):
            try:
                lines = dict(line.split(":", 1) for line in open(status))
                words = open(os.path.dirname(status) + "/cmdline").read()
            except OSError:
                continue
            if "agent" in words or "sonde-worker" in words:
                most = max(most, int(lines.get("VmHWM", "0 kB").split()[0]))
        write(memory, str(most))
    time.sleep(0.002)
"#;

/// Goes to each port as it opens, and prints how many came by TCP, by UDP, and how many were answered.
const STRANGERS: &str = r#"
import collections, json, os, socket, sys, time
count, folder = int(sys.argv[1]), sys.argv[2]
hello = json.dumps({"hello": {"token": "0" * 32, "spec": {"probe": "latency", "path": "tcp"}, "visit": {"size": 0, "last": True}}}).encode()
framed = len(hello).to_bytes(4, "big") + hello
words = [b"", b"GET / HTTP/1.1\r\n\r\n", framed[: len(framed) // 2], framed, None]
came = collections.Counter()
kept = collections.deque()
slow = collections.deque(maxlen=50)
def opened():
    for host in ["h2", "h3"]:
        try:
            for line in open(folder + "/ports-" + host):
                yield tuple(line.split())
        except OSError:
            pass
def leave(stranger):
    stranger.setblocking(False)
    try:
        came["answered"] += len(stranger.recv(64)) > 0
    except OSError:
        pass
    stranger.close()
def come(port, number):
    word = words[number % len(words)]
    address = (port[1], int(port[2]))
    if port[0] == "udp":
        datagrams.sendto(word or b"\0" * 64, address)
        return
    stranger = socket.create_connection(address, timeout=1)
    kept.append(stranger)
    try:
        if word is None:
            slow.append((stranger, number))
        else:
            stranger.send(word)
    except OSError:
        pass
    if len(kept) > 200:
        leave(kept.popleft())
datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
tried = collections.Counter()
while not os.path.exists(folder + "/stop"):
    for port in opened():
        for _ in range(min(20, count - tried[port])):
            try:
                come(port, tried[port])
            except OSError:
                break
            tried[port] += 1
            came[port[0]] += 1
    for stranger, number in slow:
        try:
            stranger.send(framed[number % len(framed) :][:1])
        except OSError:
            pass
    time.sleep(0.002)
for stranger in kept:
    leave(stranger)
try:
    datagrams.setblocking(False)
    came["answered"] += len(datagrams.recv(64)) > 0
except OSError:
    pass
print(came["tcp"], came["udp"], came["answered"])
"#;

/// The ports of what is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ports {
    /// One a repetition, which outlasts all who come.
    One,
    /// One a repetition on each host; all who came stand in the warnings of the run.
    EachHost,
    /// Open until the peers are here.
    Brief,
}

/// What is measured: its name, the command, and its ports. A bound of the rate leaves room to those who come.
const SCENES: [(&str, &str, Ports); 8] = [
    (
        "latency-tcp",
        "latency --path tcp --size 64 --precision 0 --samples 100000000 --budget SPAN",
        Ports::One,
    ),
    (
        "latency-udp",
        "latency --path udp --size 64 --precision 0 --samples 100000000 --budget SPAN",
        Ports::One,
    ),
    (
        "throughput-tcp",
        "throughput --path tcp --size 64KiB --max-rate 20Mbit --budget SPAN",
        Ports::One,
    ),
    (
        "throughput-udp",
        "throughput --path udp --size mtu --max-rate 20Mbit --budget SPAN",
        Ports::One,
    ),
    (
        "rate-tcp",
        "rate --path tcp --size 64 --rate 1000 --budget SPAN",
        Ports::One,
    ),
    (
        "pattern",
        "pattern natural-ring --size 64KiB --max-rate 20Mbit --window SPAN",
        Ports::EachHost,
    ),
    ("startup-tcp", "startup --path tcp --size 8", Ports::Brief),
    ("startup-udp", "startup --path udp --size 8", Ports::Brief),
];

/// The strangers that the repetitions of a run have counted.
fn counted(stage: &Stage, run: &str) -> u64 {
    let document = document(stage, &format!("{run}.store"));
    let launches = document["run"]["launches"].as_array().unwrap();
    let hosts = launches
        .iter()
        .flat_map(|launch| launch["interference"].as_array().unwrap());
    hosts.filter_map(|host| host["strangers"].as_u64()).sum()
}

fn document(stage: &Stage, name: &str) -> Value {
    let text = std::fs::read_to_string(stage.path(name)).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}: {text}"))
}

/// The strangers that came to the ports of a pattern, in its rounds and between them.
fn warned(stage: &Stage, run: &str) -> u64 {
    let document = document(stage, &format!("{run}.store"));
    let warnings = document["run"]["warnings"].as_array().unwrap();
    let counts = warnings.iter().filter_map(|warning| {
        let (_, count) = warning.as_str()?.split_once("data ports, refused: ")?;
        count.parse::<u64>().ok()
    });
    counts.sum()
}

/// The figures of what a run was for: the row's quantity and size, its median, and whether it is uncertain for strangers.
fn figures(stage: &Stage, run: &str) -> Vec<(String, f64, bool)> {
    let document = document(stage, &format!("{run}.json"));
    let rows = document["results"].as_array().unwrap().iter();
    let rows = rows.map(|row| {
        let of = format!("{} {} {}", row["quantity"], row["phase"], row["step"]);
        let is_marked = row["reason"]
            .as_str()
            .is_some_and(|why| why.contains("unauthenticated peers"));
        (of, row["p50"].as_f64().unwrap_or(f64::NAN), is_marked)
    });
    rows.collect()
}

#[test]
fn strangers_of_a_network_are_counted_unanswered_and_mark_what_they_met() {
    let Some(stage) = Stage::of_root(&["sshd", "ssh", "python3"]) else {
        return;
    };
    let (count, span, scenes) = match lab::is_long() {
        true => (10_000, "30s", &SCENES[..]),
        false => (200, "1s", &SCENES[..1]),
    };
    for (name, text) in [("ports.py", PORTS), ("strangers.py", STRANGERS)] {
        std::fs::write(stage.path(name), text).unwrap();
    }
    let lines = scenes
        .iter()
        .map(|(name, words, _)| format!("both {name} {words}"));
    let lines: Vec<String> = lines.collect();
    let script = stage.with_sshd(SCRIPT).replace("SCENES", &lines.join("\n"));
    let script = script.replace("SPAN", span);
    let script = script.replace("COUNT", &count.to_string());
    let options = ["--hosts", "4", "--network", "ethernet-100", "--root"];
    let run = stage.run(&options, &["sh", "-c", &script]);
    let outcome = run.limit(1_500).output();
    assert_eq!(outcome.code, 0, "{outcome}");
    for (name, _, ports) in scenes {
        let err = std::fs::read_to_string(stage.path(&format!("among-{name}.err"))).unwrap();
        for run in [format!("alone-{name}"), format!("among-{name}")] {
            assert!(
                outcome.out.contains(&format!("{run} ended with 0\n")),
                "{outcome}{err}"
            );
        }
        let (mut came, mut answered) = (0, 0);
        for host in ["h4", "h2"] {
            let said = std::fs::read_to_string(stage.path(&format!("strangers-{name}-{host}")));
            let said = said.unwrap();
            let numbers: Vec<u64> = said
                .split_whitespace()
                .map(|one| one.parse().unwrap())
                .collect();
            came += numbers[0] + numbers[1];
            answered += numbers[2];
        }
        let of = match ports {
            Ports::EachHost => warned,
            _ => counted,
        };
        let (met, none) = (
            of(&stage, &format!("among-{name}")),
            of(&stage, &format!("alone-{name}")),
        );
        println!("{name}: {came} came, {met} counted, {answered} answered");
        assert_eq!((answered, none), (0, 0), "{name}");
        assert!(
            met > 0 && met <= came,
            "{name}: {met} of {came}: {outcome}{err}"
        );
        let lasting = match ports {
            Ports::One => 2,
            Ports::EachHost => 4,
            Ports::Brief => 0,
        };
        if lasting > 0 {
            assert_eq!(
                came,
                2 * lasting * count,
                "{name}: two hosts to each: {err}"
            );
            // A full queue of the network loses datagrams.
            let least = if name.ends_with("udp") {
                came / 2
            } else {
                came
            };
            assert!(met >= least, "{name}: {met} of {came}: {err}");
        }
        let alone = figures(&stage, &format!("alone-{name}"));
        for (of, median, is_marked) in figures(&stage, &format!("among-{name}")) {
            let before = alone
                .iter()
                .find(|(other, ..)| *other == of)
                .map_or(f64::NAN, |one| one.1);
            println!("    {of}: {before} alone, {median} among them, marked: {is_marked}");
            // What was not had has no mark.
            assert!(is_marked || median.is_nan(), "{name}: {of}: {err}");
        }
    }
    for host in ["h2", "h3"] {
        let most = std::fs::read_to_string(stage.path(&format!("memory-{host}"))).unwrap();
        println!("an agent on {host} took {most} KiB at most");
        assert!(
            (1..MEMORY_KIB).contains(&most.parse().unwrap()),
            "{most} KiB on {host}"
        );
    }
}
