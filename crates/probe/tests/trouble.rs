//! What goes wrong in conversations between two agents that are processes, and that nothing of it stays.

use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::agents::{
    self, Agent, HERE, SOON, agent, agents, conversation, impatient, measure, sampled, samples,
    serve,
};
use crate::processes::{children, signal, soon};
use sonde_channel::CONTROL;
use sonde_measure::{Path, Wait};
use sonde_measure::{Probe, Procedure, Sampling, Spec};
use sonde_probe::{Answer, Conversation, Error, Measure, Request, Serve};

/// What goes through sockets; frames past them are for `conversation.rs`.
const SOCKETS: &[Path] = &[Path::Tcp, Path::Udp, Path::Unix, Path::Shm];

/// Longer than any test.
const LONG: Procedure = Procedure::Latency(Sampling {
    samples_max: 1_000_000,
    precision_per_mille: None,
    budget_ns: 60_000_000_000,
    ..Sampling::LATENCY
});

#[test]
fn a_link_carries_one_conversation_after_another() {
    let (mut client, mut server) = agents();
    for probe in [
        Probe::Startup,
        Probe::Latency,
        Probe::Message,
        Probe::Startup,
    ] {
        for &path in SOCKETS {
            let spec = Spec {
                sizes_bytes: vec![1, 100],
                ..sampled(Spec::new(probe, path, Wait::Block), |sampling| {
                    *sampling = sampling.up_to(20);
                })
            };
            conversation(spec)
                .run(&mut client.link, &mut server.link)
                .unwrap();
        }
    }
    let bad = Spec {
        sizes_bytes: vec![0],
        ..impatient(Probe::Latency, Path::Tcp)
    };
    assert!(matches!(
        conversation(bad).run(&mut client.link, &mut server.link),
        Err(Error::Unmeasurable { .. })
    ));
    let spec = samples(Path::Tcp, 20);
    // The roles can be exchanged.
    conversation(spec)
        .run(&mut server.link, &mut client.link)
        .unwrap();
}

#[test]
fn a_wrong_token_is_refused_and_the_right_one_still_served() {
    for probe in [Probe::Startup, Probe::Latency] {
        for &path in SOCKETS {
            let (mut client, mut server) = agents();
            let spec = sampled(Spec::new(probe, path, Wait::Block), |sampling| {
                *sampling = sampling.up_to(3);
            });
            let peer = serve(&mut server.link, &spec, "right");
            let stranger = Spec {
                timeout_ns: 500_000_000,
                ..spec.clone()
            };
            let error = measure(&mut client.link, &stranger, peer, "wrong")
                .unwrap_err()
                .to_string();
            // By TCP and UDP it is turned away by its port, before it could be told why.
            let is_told = matches!(path, Path::Unix | Path::Shm);
            let is_refused = error.contains("refused") && error.contains("token");
            assert_eq!(is_refused, is_told, "{probe:?} {path:?}: {error}");
            measure(&mut client.link, &spec, peer, "right").unwrap();
            match server.link.answer("its report", SOON).unwrap() {
                // By UDP it sends again until its time is up.
                Answer::Served(served) if path == Path::Udp => assert!(served.refused >= 1),
                Answer::Served(served) => assert_eq!(served.refused, 1, "{probe:?} {path:?}"),
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn nobody_with_the_token_is_an_error() {
    for &path in SOCKETS {
        let (mut client, mut server) = agents();
        let spec = impatient(Probe::Latency, path);
        let peer = serve(&mut server.link, &spec, "right");
        measure(&mut client.link, &spec, peer, "wrong").unwrap_err();
        let error = server
            .link
            .answer("its report", SOON)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("no peer with the token") && !error.contains("refused connections: 0"),
            "{error}"
        );
        let why = match path {
            Path::Tcp | Path::Udp => "not from an address and port of this conversation",
            _ => "wrong token",
        };
        assert!(error.contains(why), "{path:?}: {error}");
    }
}

#[test]
fn another_size_is_an_integrity_error() {
    for &path in SOCKETS {
        let (mut client, mut server) = agents();
        let spec = Spec {
            sizes_bytes: vec![64],
            ..impatient(Probe::Latency, path)
        };
        let peer = serve(&mut server.link, &spec, "t");
        let other = Spec {
            sizes_bytes: vec![128],
            ..spec
        };
        let error = measure(&mut client.link, &other, peer, "t")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("sizes_bytes is [64] here and [128] at the peer"),
            "{error}"
        );
        let error = server
            .link
            .answer("its report", SOON)
            .unwrap_err()
            .to_string();
        assert!(error.contains("integrity: sizes_bytes"), "{error}");
    }
}

#[test]
fn a_datagram_of_another_size_is_an_error() {
    let mut server = Agent::start("h2");
    let spec = Spec {
        sizes_bytes: vec![64],
        ..impatient(Probe::Latency, Path::Udp)
    };
    let peer = serve(&mut server.link, &spec, "t");
    let socket = agents::announced("t");
    socket.set_read_timeout(Some(SOON)).unwrap();
    socket.connect(peer).unwrap();
    let hello =
        serde_json::json!({"hello": {"token": "t", "spec": spec, "visit": {"size": 0, "last": true}}})
            .to_string();
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
        (Path::Unix, Wait::Block),
        (Path::Shm, Wait::Block),
        (Path::Shm, Wait::Poll),
    ] {
        let (mut client, mut server) = agents();
        let spec = Spec {
            wait,
            procedure: LONG,
            ..impatient(Probe::Latency, path)
        };
        let peer = serve(&mut server.link, &spec, "t");
        let request = Measure {
            moments: false,
            spec,
            peer,
            token: "t".into(),
            flush_neighbour: None,
            source: None,
            begin_ns: None,
        };
        client.link.send(&Request::Measure(request)).unwrap();
        std::thread::sleep(Duration::from_millis(100));
        server.child.kill().unwrap();
        let killed = Instant::now();
        let error = client.link.answer("the measurement", SOON).err().unwrap();
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
    for &path in SOCKETS {
        let (mut client, mut server) = agents();
        let spec = Spec {
            procedure: Procedure::Stream {
                window_ns: 60_000_000_000,
            },
            ..impatient(Probe::Stream, path)
        };
        let conversation = conversation(spec);
        let pid = client.child.id();
        let killer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            signal("-9", pid);
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
        Conversation::new(samples(path, 5), HERE.into())
            .unwrap()
            .run(&mut other.link, &mut server.link)
            .unwrap();
    }
}

#[test]
fn every_conversation_has_fresh_workers_and_leaves_none() {
    let (mut client, mut server) = agents();
    let spec = samples(Path::Tcp, 5);
    let mut seen = Vec::new();
    for _ in 0..3 {
        let peer = serve(&mut server.link, &spec, "t");
        let workers = children(server.child.id());
        assert_eq!(workers.len(), 1);
        assert!(!seen.contains(&workers[0]));
        seen.extend(workers);
        measure(&mut client.link, &spec, peer, "t").unwrap();
        server.link.answer("its report", SOON).unwrap();
        for agent in [&client, &server] {
            soon("a worker stays", || children(agent.child.id()).is_empty());
        }
    }
}

#[test]
fn a_killed_worker_is_named_and_its_agent_goes_on() {
    let (mut client, mut server) = agents();
    let long = Spec {
        procedure: LONG,
        ..impatient(Probe::Latency, Path::Tcp)
    };
    for (victim_serves, doing) in [(true, "served"), (false, "measured")] {
        let conversation = conversation(long.clone());
        let victim = if victim_serves { &server } else { &client }.child.id();
        let killer = std::thread::spawn(move || {
            soon("no worker starts", || !children(victim).is_empty());
            std::thread::sleep(Duration::from_millis(200));
            let worker = children(victim)[0];
            signal("-9", worker);
            worker
        });
        let error = conversation
            .run(&mut client.link, &mut server.link)
            .err()
            .unwrap();
        let worker = killer.join().unwrap();
        let words = format!("(process {worker}) was killed by signal 9 while it {doing}");
        assert!(error.to_string().contains(&words), "{error}");
        // The agents are well.
        assert!(
            !error.lost() && client.link.in_step() && server.link.in_step(),
            "{error}"
        );
        Conversation::new(samples(Path::Udp, 5), HERE.into())
            .unwrap()
            .run(&mut client.link, &mut server.link)
            .unwrap();
    }
}

/// One of several at once, whose waits are longer than any test.
fn one_of_several() -> Conversation {
    conversation(Spec {
        procedure: LONG,
        timeout_ns: 60_000_000_000,
        ..Spec::new(Probe::Latency, Path::Udp, Wait::Block)
    })
}

/// The worker of an agent, once it is at work.
fn worker_of(agent: u32) -> u32 {
    soon("no worker starts", || !children(agent).is_empty());
    children(agent)[0]
}

#[test]
fn one_of_several_is_ended_when_another_one_fails() {
    let (mut client, mut server) = agents();
    let (alarm, stop) = UnixStream::pair().unwrap();
    let agent = client.child.id();
    let other = std::thread::spawn(move || {
        worker_of(agent);
        std::thread::sleep(Duration::from_millis(200));
        drop(alarm);
    });
    let began = Instant::now();
    let error = one_of_several().run_until(&mut client.link, &mut server.link, stop.as_fd());
    assert!(matches!(error, Err(Error::Ended)), "{error:?}");
    assert!(began.elapsed() < SOON);
    other.join().unwrap();
    for agent in [&client, &server] {
        soon("a worker stays", || children(agent.child.id()).is_empty());
        assert!(agent.link.in_step());
    }
    conversation(samples(Path::Tcp, 5))
        .run(&mut client.link, &mut server.link)
        .unwrap();
}

#[test]
fn one_of_several_ends_with_its_serving_side() {
    let (mut client, mut server) = agents();
    let (_alarm, stop) = UnixStream::pair().unwrap();
    let agents = [client.child.id(), server.child.id()];
    let killer = std::thread::spawn(move || {
        let [measuring, serving] = agents.map(worker_of);
        std::thread::sleep(Duration::from_millis(200));
        // As a client of files, that goes on without its server.
        signal("-STOP", measuring);
        signal("-9", serving);
        serving
    });
    let began = Instant::now();
    let error = one_of_several().run_until(&mut client.link, &mut server.link, stop.as_fd());
    let (error, worker) = (error.unwrap_err().to_string(), killer.join().unwrap());
    assert!(began.elapsed() < SOON, "{error}");
    let words = format!("(process {worker}) was killed by signal 9 while it served");
    assert!(
        error.contains(&words) && !error.contains("measured"),
        "{error}"
    );
    // Nobody names the worker that was ended for it.
    assert!(client.link.in_step() && server.link.in_step(), "{error}");
    conversation(samples(Path::Tcp, 5))
        .run(&mut client.link, &mut server.link)
        .unwrap();
}

#[test]
fn a_lost_agent_is_told_from_one_that_failed_and_leaves_no_worker() {
    for server_dies in [true, false] {
        let (mut client, mut server) = agents();
        let long = Spec {
            procedure: LONG,
            ..impatient(Probe::Latency, Path::Udp)
        };
        let (victim, name) = if server_dies {
            (server.child.id(), "h2")
        } else {
            (client.child.id(), "h1")
        };
        let killer = std::thread::spawn(move || {
            soon("no worker starts", || !children(victim).is_empty());
            std::thread::sleep(Duration::from_millis(200));
            let worker = children(victim)[0];
            signal("-9", victim);
            worker
        });
        let error = conversation(long)
            .run(&mut client.link, &mut server.link)
            .err()
            .unwrap();
        assert!(error.lost() && error.agent() == Some(name), "{error}");
        let worker = killer.join().unwrap();
        soon("its worker stays", || {
            let stat = std::fs::read_to_string(format!("/proc/{worker}/stat"));
            stat.is_err() || stat.is_ok_and(|stat| stat.contains(") Z "))
        });
    }
}

#[test]
fn an_agent_whose_program_was_unlinked_still_works() {
    let copy = std::env::temp_dir().join(format!("sonde-probe-copy-{}", std::process::id()));
    // By a child: a program that this process has open for writing while another test forks cannot be run.
    let own = std::env::current_exe().unwrap();
    let copied = Command::new("cp").arg(own).arg(&copy).status();
    assert!(copied.unwrap().success());
    let start = |name: &str| {
        let mut command = Command::new(&copy);
        command.args([
            "--ignored",
            "--exact",
            "agents::play_the_agent",
            "--nocapture",
        ]);
        Agent::from(name, command)
    };
    let (mut client, mut server) = (start("h1"), start("h2"));
    std::fs::remove_file(&copy).unwrap();
    conversation(samples(Path::Tcp, 5))
        .run(&mut client.link, &mut server.link)
        .unwrap();
}

#[test]
fn a_wait_for_a_peer_can_be_given_up() {
    for path in [Path::Tcp, Path::Udp] {
        let mut server = Agent::start("h2");
        let spec = Spec {
            timeout_ns: 600_000_000_000,
            ..Spec::new(Probe::Latency, path, Wait::Poll)
        };
        serve(&mut server.link, &spec, "t");
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
fn the_end_of_the_input_ends_the_agent() {
    let mut child = agent()
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let request = Serve {
        spec: Spec {
            timeout_ns: 600_000_000_000,
            ..Spec::new(Probe::Latency, Path::Tcp, Wait::Block)
        },
        bind: HERE.into(),
        token: "t".into(),
        peer: None,
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
