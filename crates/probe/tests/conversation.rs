//! Every kind of conversation over loopback between two agents that are processes, and what goes wrong in them.
//!
//! Model:   an agent is this test program, started again to play it.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sonde_channel::{CONTROL, Path, Wait};
use sonde_probe::{
    AgentLink, Answer, Conversation, EndedBy, Error, Figures, Latency, Measure, Outcome, Probe,
    Request, Sent, Serve, Startup, Terms,
};

const HERE: Ipv4Addr = Ipv4Addr::LOCALHOST;
const SOON: Duration = Duration::from_secs(20);

/// The command that starts an agent: this test program, playing that part.
fn agent() -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "play_the_agent", "--nocapture"]);
    command
}

/// No test: the way in for [`agent`]. What the harness prints before is passed over like a shell's greeting.
#[test]
#[ignore = "played by the other tests"]
fn play_the_agent() {
    let ended = sonde_probe::agent::run(std::io::stdin(), std::io::stdout());
    if let Err(error) = &ended {
        eprintln!("{error}");
    }
    std::process::exit(i32::from(ended.is_err()));
}

struct Agent {
    link: AgentLink,
    child: Child,
}

impl Agent {
    fn start(name: &str) -> Self {
        let mut child = agent()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let link = AgentLink::open(name, from, to, SOON).unwrap();
        Self { link, child }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn agents() -> (Agent, Agent) {
    (Agent::start("h1"), Agent::start("h2"))
}

fn conversation(terms: Terms) -> Conversation {
    Conversation::new(terms, HERE.into()).unwrap()
}

fn have(terms: Terms) -> Outcome {
    let (mut client, mut server) = agents();
    conversation(terms)
        .run(&mut client.link, &mut server.link)
        .unwrap_or_else(|error| panic!("{error}"))
}

fn startup(outcome: &Outcome) -> &Startup {
    match &outcome.measured.figures {
        Figures::Startup(startup) => startup,
        other => panic!("{other:?}"),
    }
}

fn latency(outcome: &Outcome) -> &Latency {
    match &outcome.measured.figures {
        Figures::Latency(latency) => latency,
        other => panic!("{other:?}"),
    }
}

fn sent(outcome: &Outcome) -> &Sent {
    match &outcome.measured.figures {
        Figures::Throughput(sent) => sent,
        other => panic!("{other:?}"),
    }
}

/// Short waits, so that what goes wrong is over soon.
fn impatient(probe: Probe, path: Path) -> Terms {
    Terms {
        patience_ns: 400_000_000,
        ..Terms::new(probe, path, Wait::Block)
    }
}

#[test]
fn startup_tcp_has_its_steps() {
    for wait in [Wait::Block, Wait::Poll] {
        let outcome = have(Terms {
            samples: 5,
            size_bytes: 64,
            verify: true,
            ..Terms::new(Probe::Startup, Path::Tcp, wait)
        });
        let startup = startup(&outcome);
        for list in [
            &startup.connect_ns,
            &startup.first_ns,
            &startup.cold_total_ns,
            &startup.second_ns,
        ] {
            assert_eq!(list.len(), 5);
            assert!(list.iter().all(|&ns| ns > 0));
        }
        for sample in 0..5 {
            assert_eq!(
                startup.connect_ns[sample] + startup.first_ns[sample],
                startup.cold_total_ns[sample]
            );
        }
        assert_eq!(
            (
                outcome.served.messages,
                outcome.served.bytes,
                outcome.served.refused
            ),
            (10, 640, 0)
        );
        assert_eq!(outcome.measured.settings.nodelay, Some(true));
    }
}

#[test]
fn startup_udp_has_its_steps() {
    let outcome = have(Terms {
        samples: 5,
        ..Terms::new(Probe::Startup, Path::Udp, Wait::Block)
    });
    let startup = startup(&outcome);
    assert_eq!(
        (
            startup.first_ns.len() as u64 + startup.lost,
            startup.connect_ns.len()
        ),
        (5, 0)
    );
    for sample in 0..startup.first_ns.len() {
        assert!(startup.first_ns[sample] <= startup.cold_total_ns[sample]);
    }
    assert!(outcome.served.messages >= 10);
}

#[test]
fn latency_is_half_a_round_trip() {
    for (path, wait, size) in [
        (Path::Tcp, Wait::Block, 1),
        (Path::Tcp, Wait::Poll, 100_000),
        (Path::Udp, Wait::Block, 1),
        (Path::Udp, Wait::Poll, 1_000),
    ] {
        let terms = Terms {
            samples: 1_500,
            warmup: 50,
            size_bytes: size,
            samples_returned_max: 1_000,
            verify: true,
            ..Terms::new(Probe::Latency, path, wait)
        };
        let outcome = have(terms);
        let latency = latency(&outcome);
        // A busy machine may use up the budget when both sides spin.
        let lost = latency.lost + latency.late;
        assert!(
            latency.rtt_ns.count + lost == 1_500 || latency.ended_by == EndedBy::Budget,
            "{latency:?}"
        );
        assert!(latency.rtt_samples_ns.len() <= 1_000 && latency.warmup_discarded > 0);
        assert_eq!(latency.latency_ns.p50, latency.rtt_ns.p50 / 2);
        assert_eq!(latency.latency_ns.max, latency.rtt_ns.max / 2);
        assert!(
            latency.rtt_ns.min > 0
                && latency.rtt_ns.min <= *latency.rtt_samples_ns.iter().min().unwrap()
        );
        assert!(outcome.served.messages >= latency.rtt_ns.count + latency.warmup_discarded);
        println!("{path:?} {wait:?} {size} B: {:?}", latency.latency_ns);
    }
}

#[test]
fn latency_ends_with_its_budget() {
    let terms = Terms {
        samples: 1_000_000,
        budget_ns: 50_000_000,
        ..Terms::new(Probe::Latency, Path::Tcp, Wait::Block)
    };
    let outcome = have(terms);
    assert_eq!(latency(&outcome).ended_by, EndedBy::Budget);
}

#[test]
fn throughput_tcp_is_rated_by_its_receiver() {
    let terms = Terms {
        budget_ns: 1_000_000_000,
        size_bytes: 70_000,
        verify: true,
        send_buffer_bytes: Some(200_000),
        ..Terms::new(Probe::Throughput, Path::Tcp, Wait::Block)
    };
    let outcome = have(terms);
    let (sent, served) = (sent(&outcome), &outcome.served);
    let window = served.window.unwrap();
    assert_eq!(sent.bytes, served.bytes);
    assert_eq!(served.messages, sent.messages);
    assert!(window.window_ns >= 1_000_000_000 && window.bytes < served.bytes);
    assert_eq!(
        u128::from(window.bps),
        u128::from(window.bytes) * 8_000_000_000 / u128::from(window.window_ns)
    );
    assert!(window.cpu_ns.unwrap() > 0 && sent.window.cpu_ns > 0);
    // The sender was busy for its window, by the kernel's own count (it is in jiffies, so 20 ms of slack).
    assert!(
        sent.window.busy_us.unwrap() * 1_000 <= sent.window.window_ns + 20_000_000,
        "{sent:?}"
    );
    assert!(sent.window.busy_us.unwrap() > 0 && sent.window.retransmits.is_some());
    assert_eq!(served.bytes_per_100ms.iter().sum::<u64>(), served.bytes);
    assert_eq!(served.bytes_per_second().iter().sum::<u64>(), served.bytes);
    assert_eq!(
        outcome.measured.settings.send_buffer.asked_bytes,
        Some(200_000)
    );
    println!("tcp {} bit/s", window.bps);
}

#[test]
fn throughput_udp_accounts_for_every_datagram() {
    let terms = Terms {
        budget_ns: 1_000_000_000,
        ..Terms::new(Probe::Throughput, Path::Udp, Wait::Block)
    };
    let outcome = have(terms);
    let (sent, served) = (sent(&outcome), &outcome.served);
    assert_eq!(sent.messages, served.messages + served.lost.unwrap());
    assert_eq!(
        served.bytes,
        (served.messages + served.duplicated.unwrap()) * 1_472
    );
    assert!(
        served.reordered.is_some()
            && served.window.unwrap().bps > 0
            && sent.window.busy_us.is_none()
    );
    println!(
        "udp {} bit/s, {:?} lost of {}",
        served.window.unwrap().bps,
        served.lost,
        sent.messages
    );
}

#[test]
fn a_link_carries_one_conversation_after_another() {
    let (mut client, mut server) = agents();
    for probe in [Probe::Startup, Probe::Latency, Probe::Startup] {
        for path in [Path::Tcp, Path::Udp] {
            let terms = Terms {
                samples: 20,
                ..Terms::new(probe, path, Wait::Block)
            };
            conversation(terms)
                .run(&mut client.link, &mut server.link)
                .unwrap();
        }
    }
    let bad = Terms {
        size_bytes: 0,
        ..impatient(Probe::Latency, Path::Tcp)
    };
    assert!(matches!(
        conversation(bad).run(&mut client.link, &mut server.link),
        Err(Error::Terms { .. })
    ));
    let terms = Terms {
        samples: 20,
        ..Terms::new(Probe::Latency, Path::Tcp, Wait::Block)
    };
    // The roles can be exchanged.
    conversation(terms)
        .run(&mut server.link, &mut client.link)
        .unwrap();
}

fn serve(server: &mut AgentLink, terms: &Terms, token: &str) -> SocketAddr {
    let request = Serve {
        terms: terms.clone(),
        bind: HERE.into(),
        token: token.into(),
        flush_neighbour: None,
    };
    server.send(&Request::Serve(request)).unwrap();
    match server.answer("its data port", SOON).unwrap() {
        Answer::Serving { port } => SocketAddr::new(HERE.into(), port),
        other => panic!("{other:?}"),
    }
}

fn measure(
    client: &mut AgentLink,
    terms: &Terms,
    peer: SocketAddr,
    token: &str,
) -> Result<Answer, Error> {
    let request = Measure {
        terms: terms.clone(),
        peer,
        token: token.into(),
        flush_neighbour: None,
    };
    client.send(&Request::Measure(request)).unwrap();
    client.answer("the measurement", SOON)
}

#[test]
fn a_wrong_token_is_refused_and_the_right_one_still_served() {
    for probe in [Probe::Startup, Probe::Latency] {
        for path in [Path::Tcp, Path::Udp] {
            let (mut client, mut server) = agents();
            let terms = Terms {
                samples: 3,
                ..Terms::new(probe, path, Wait::Block)
            };
            let peer = serve(&mut server.link, &terms, "right");
            let error = measure(&mut client.link, &terms, peer, "wrong")
                .unwrap_err()
                .to_string();
            assert!(
                error.contains("refused") && error.contains("token"),
                "{error}"
            );
            measure(&mut client.link, &terms, peer, "right").unwrap();
            match server.link.answer("its report", SOON).unwrap() {
                Answer::Served(served) => assert_eq!(served.refused, 1, "{probe:?} {path:?}"),
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn nobody_with_the_token_is_an_error() {
    for path in [Path::Tcp, Path::Udp] {
        let (mut client, mut server) = agents();
        let terms = impatient(Probe::Latency, path);
        let peer = serve(&mut server.link, &terms, "right");
        measure(&mut client.link, &terms, peer, "wrong").unwrap_err();
        let error = server
            .link
            .answer("its report", SOON)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("no peer with the token") && error.contains("refused were 1"),
            "{error}"
        );
        assert!(error.contains("wrong token"), "{error}");
    }
}

#[test]
fn another_size_is_an_integrity_error() {
    for path in [Path::Tcp, Path::Udp] {
        let (mut client, mut server) = agents();
        let terms = Terms {
            size_bytes: 64,
            ..impatient(Probe::Latency, path)
        };
        let peer = serve(&mut server.link, &terms, "t");
        let other = Terms {
            size_bytes: 128,
            ..terms
        };
        let error = measure(&mut client.link, &other, peer, "t")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("size_bytes is 64 here and 128 at the peer"),
            "{error}"
        );
        let error = server
            .link
            .answer("its report", SOON)
            .unwrap_err()
            .to_string();
        assert!(error.contains("integrity: size_bytes"), "{error}");
    }
}

#[test]
fn a_datagram_of_another_size_is_an_error() {
    let mut server = Agent::start("h2");
    let terms = Terms {
        size_bytes: 64,
        ..impatient(Probe::Latency, Path::Udp)
    };
    let peer = serve(&mut server.link, &terms, "t");
    let socket = UdpSocket::bind((HERE, 0)).unwrap();
    socket.set_read_timeout(Some(SOON)).unwrap();
    socket.connect(peer).unwrap();
    let hello =
        serde_json::json!({"hello": {"token": "t", "terms": terms, "last": false}}).to_string();
    socket
        .send(&[CONTROL.as_slice(), hello.as_bytes()].concat())
        .unwrap();
    let mut reply = [0; 1_000];
    let size = socket.recv(&mut reply).unwrap();
    assert!(reply[..size].ends_with(b"{\"accepted\":{}}"));
    socket.send(&[0; 63]).unwrap();
    let error = server
        .link
        .answer("its report", SOON)
        .unwrap_err()
        .to_string();
    assert!(error.contains("63 bytes came where 64"), "{error}");
}

#[test]
fn a_killed_server_is_reported_in_time() {
    for (path, wait) in [
        (Path::Tcp, Wait::Block),
        (Path::Udp, Wait::Block),
        (Path::Udp, Wait::Poll),
    ] {
        let (mut client, mut server) = agents();
        let terms = Terms {
            wait,
            samples: 1_000_000,
            budget_ns: 60_000_000_000,
            ..impatient(Probe::Latency, path)
        };
        let peer = serve(&mut server.link, &terms, "t");
        let request = Measure {
            terms,
            peer,
            token: "t".into(),
            flush_neighbour: None,
        };
        client.link.send(&Request::Measure(request)).unwrap();
        std::thread::sleep(Duration::from_millis(100));
        server.child.kill().unwrap();
        let killed = Instant::now();
        let error = client.link.answer("the measurement", SOON).unwrap_err();
        assert!(
            killed.elapsed() < SOON && matches!(error, Error::Agent { .. }),
            "{error}"
        );
        assert!(
            error.to_string().contains(&peer.to_string()) && !error.remedy().is_empty(),
            "{error}"
        );
        let error = server.link.answer("its report", SOON).unwrap_err();
        assert!(matches!(error, Error::AgentGone { .. }), "{error}");
        // The measuring agent is well: it can be asked again.
        assert!(client.link.in_step());
    }
}

#[test]
fn a_killed_client_is_reported_in_time() {
    for path in [Path::Tcp, Path::Udp] {
        let (mut client, mut server) = agents();
        let terms = Terms {
            budget_ns: 60_000_000_000,
            ..impatient(Probe::Throughput, path)
        };
        let conversation = conversation(terms);
        let pid = client.child.id().to_string();
        let killer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            assert!(
                Command::new("kill")
                    .args(["-9", &pid])
                    .status()
                    .unwrap()
                    .success()
            );
        });
        let begin = Instant::now();
        let error = conversation
            .run(&mut client.link, &mut server.link)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("agent h1 ended while the measurement"),
            "{error}"
        );
        assert!(begin.elapsed() < SOON, "{error}");
        killer.join().unwrap();
        assert!(server.link.in_step());
        let mut other = Agent::start("h3");
        let terms = Terms {
            samples: 5,
            ..Terms::new(Probe::Latency, path, Wait::Block)
        };
        Conversation::new(terms, HERE.into())
            .unwrap()
            .run(&mut other.link, &mut server.link)
            .unwrap();
    }
}

#[test]
fn a_wait_for_a_peer_can_be_given_up() {
    for path in [Path::Tcp, Path::Udp] {
        let mut server = Agent::start("h2");
        let terms = Terms {
            patience_ns: 600_000_000_000,
            ..Terms::new(Probe::Latency, path, Wait::Poll)
        };
        serve(&mut server.link, &terms, "t");
        server.link.send(&Request::Stop {}).unwrap();
        let error = server
            .link
            .answer("its report", SOON)
            .unwrap_err()
            .to_string();
        assert!(error.contains("given up before a peer came"), "{error}");
    }
}

#[test]
fn an_unreachable_server_ends_both_sides() {
    let (mut client, mut server) = agents();
    let elsewhere = Conversation::new(
        impatient(Probe::Latency, Path::Tcp),
        "192.0.2.1".parse().unwrap(),
    )
    .unwrap();
    let error = elsewhere
        .run(&mut client.link, &mut server.link)
        .unwrap_err();
    assert!(
        error.to_string().contains("192.0.2.1") && error.remedy().contains("ip addr"),
        "{error}"
    );
    assert!(client.link.in_step() && server.link.in_step());
}

#[test]
fn neighbours_are_forgotten_on_request() {
    let (mut client, mut server) = agents();
    let mut cold = conversation(Terms {
        samples: 2,
        ..Terms::new(Probe::Startup, Path::Udp, Wait::Block)
    });
    cold.flush_client = Some("lo".into());
    match cold.run(&mut client.link, &mut server.link) {
        Ok(outcome) => assert_eq!(
            startup(&outcome).first_ns.len() as u64 + startup(&outcome).lost,
            2
        ),
        Err(Error::Agent { what, .. }) if what.contains("forget") => {
            println!("skipped: CAP_NET_ADMIN ({what})")
        }
        Err(error) => panic!("{error}"),
    }
    cold.flush_client = Some("nosuch0".into());
    let error = cold
        .run(&mut client.link, &mut server.link)
        .unwrap_err()
        .to_string();
    assert!(error.contains("nosuch0"), "{error}");
}

#[test]
fn the_end_of_the_input_ends_the_agent() {
    let mut child = agent()
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let request = Serve {
        terms: Terms {
            patience_ns: 600_000_000_000,
            ..Terms::new(Probe::Latency, Path::Tcp, Wait::Block)
        },
        bind: HERE.into(),
        token: "t".into(),
        flush_neighbour: None,
    };
    let mut to = child.stdin.take().unwrap();
    to.write_all(&sonde_probe::frame::encode(&Request::Serve(request)).unwrap())
        .unwrap();
    drop(to);
    let begin = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(
            begin.elapsed() < SOON,
            "it waits for a peer although its orchestrator is gone"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}
