//! Fail-over in a running lab: a stream goes on by the hosts' other network when theirs fails, and comes back.
//!
//! Model:   all lines of the first network go down under a transfer by one connection, and up again. What it is stalled for is the time until
//!          the kernel takes the other route, which it looks for at most once a second, and TCP's own until it sends again: at most as long as
//!          it has waited by then, since it doubles its time-out, and no less than a second is allowed.
//! Checked: here.

use crate::lab::{Stage, attachments, has};
use crate::paired::lab_networks::on_h1;

const USAGE: i32 = 64;
/// `send`, `receive` and `watch`, which tells when the route to the other host changes.
const TRANSFER: &str = r#"
import hashlib, os, socket, subprocess, sys, time
PORT, SECONDS = 7000, 7
def receive():
    listener = socket.create_server(("", PORT))
    open("listens", "w").close()
    link, _ = listener.accept()
    digest, last, gap, count = hashlib.sha256(), time.monotonic(), 0, 0
    while data := link.recv(1 << 16):
        now = time.monotonic()
        gap, last = max(gap, now - last), now
        digest.update(data)
        count += len(data)
    with open("part", "w") as file: file.write(f"received {digest.hexdigest()} {count}\nstalled {gap * 1000:.0f}\n")
    os.rename("part", "received")
def send():
    link = socket.create_connection(("h2", PORT))
    digest, end, count = hashlib.sha256(), time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        data = count.to_bytes(8, "big") + bytes(8192)
        link.sendall(data)
        digest.update(data)
        count += len(data)
    link.shutdown(socket.SHUT_WR)
    link.recv(1)
    print("sent", digest.hexdigest(), count)
def said(*command): return subprocess.run(command, capture_output=True, text=True).stdout
def sent_by_eth1(): return int(next(line for line in open("/proc/net/dev") if "eth1:" in line).split()[9])
def watch(address):
    begin, before = time.monotonic(), sent_by_eth1()
    now = lambda: (time.monotonic() - begin) * 1000
    while "NO-CARRIER" not in said("ip", "-o", "link", "show", "eth0"): time.sleep(0.002)
    carrier = now()
    while "dev eth1" not in said("ip", "route", "get", address): time.sleep(0.002)
    detected = now()
    while sent_by_eth1() < before + 1000: time.sleep(0.002)
    asks = "PERMANENT" not in said("ip", "neighbour", "show", address, "dev", "eth1")
    # By one write: two of them end at once.
    os.write(1, f"carrier {carrier:.0f}\ndetected {detected:.0f}\nfirst {now():.0f}\nasks {int(asks)}\n".encode())
{"send": send, "receive": receive, "watch": watch}[sys.argv[1]](*sys.argv[2:])
"#;

#[test]
fn a_stream_goes_on_by_the_other_network_and_comes_back() {
    if !has("ip") || !has("ping") {
        return;
    }
    for case in attachments() {
        let stage = Stage::new(case);
        let (program, ledger) = (stage.path("transfer.py"), stage.path("ledger"));
        std::fs::write(&program, TRANSFER).unwrap();
        let script = format!(
            "run='/usr/bin/python3 {program}'; bytes() {{ awk '/eth0:|eth1:/ {{ print \"bytes\", $10 }}' /proc/net/dev; }}
            sonde lab exec --detach h2 -- $run receive; until [ -e listens ]; do sleep 0.05; done
            $run send > sent & sleep 1.5; bytes
            tell link all down; sonde lab exec h2 -- $run watch 10.9.0.1 & $run watch 10.9.0.2; wait $!; sleep 2; bytes
            fails gone 10.9.0.9; answers new h2
            tell link all up; wait; bytes; cat sent; until [ -e received ]; do sleep 0.05; done; cat received; ip route get 10.9.0.2"
        );
        let options = [
            "--hosts",
            "2",
            "--network",
            "atm-oc3c",
            "--network",
            "ethernet-100",
            "--fail-over",
            "--ledger",
            &ledger,
        ];
        let outcome = on_h1(&stage, &options, &script);
        let told = |what: &str| -> Vec<&str> {
            outcome
                .out
                .lines()
                .filter_map(|line| line.strip_prefix(what)?.strip_prefix(' '))
                .collect()
        };
        let numbers = |what| {
            told(what)
                .iter()
                .map(|word| word.parse().unwrap())
                .collect::<Vec<u64>>()
        };
        // One connection, and each byte of it.
        assert_eq!(told("sent"), told("received"), "{case:?}: {outcome}");
        assert_eq!(
            (told("gone"), told("new")),
            (vec!["no"], vec!["yes"]),
            "{case:?}: {outcome}"
        );
        let (stalled, detected) = (numbers("stalled"), numbers("detected"));
        assert_eq!(detected.len(), 2, "{case:?}: {outcome}");
        // Each host sees its carrier go, takes the other route, asks nobody for an address, and TCP sends again.
        let (carrier, first) = (numbers("carrier"), numbers("first"));
        assert_eq!(numbers("asks"), [0, 0], "{case:?}: {outcome}");
        let in_order = carrier.iter().zip(&detected).zip(&first);
        assert!(
            in_order.clone().all(|((a, b), c)| a <= b && b <= c),
            "{case:?}: {outcome}"
        );
        println!(
            "{case:?}: carrier {carrier:?}, route {detected:?}, sent {first:?}, stalled {stalled:?} ms"
        );
        let most = detected.iter().max().unwrap() + 1_000;
        assert!(
            stalled[0] <= most + 50,
            "{case:?}: {stalled:?} {detected:?}"
        );
        // eth0 and eth1 before, while it is down, and after.
        let bytes = numbers("bytes");
        let [first0, first1, down0, down1, last0, _] = bytes[..] else {
            panic!("{case:?}: not six counters: {outcome}");
        };
        const MUCH: u64 = 1 << 20;
        assert!(first0 > MUCH && first1 < MUCH, "{case:?}: {bytes:?}");
        assert!(
            down1 > first1 + MUCH && last0 > down0 + MUCH,
            "{case:?}: {bytes:?}"
        );
        assert!(
            outcome.out.contains("10.9.0.2 dev eth0"),
            "{case:?}: {outcome}"
        );
        let replay = stage.sonde(&["lab", "replay", &ledger]).expect(0);
        assert!(
            replay
                .out
                .contains("same admissions, same order, same losses"),
            "{replay}"
        );
    }
}

#[test]
fn it_needs_hosts_on_two_networks() {
    let stage = Stage::new(attachments()[0]);
    let refused = stage.run(&["--fail-over"], &["true"]).expect(USAGE);
    refused.tells(&["`--fail-over` is for hosts on two networks or more"]);
}
