//! Client and server on real sockets of this machine, over UDP and TCP, NFS 2 and 3.

use sonde_measure::files::Meta;
use sonde_units::Span;
use sonde_workload::files::client::Timers;
use sonde_workload::files::host::Host;
use sonde_workload::files::mount::{Mount, Over, Reach, Trouble};
use sonde_workload::files::nfs::{Handle, Stable, Status, Version};
use sonde_workload::files::server::{self, Server};
use sonde_workload::files::session::{Failure, Job, One, Sink, Terms};
use sonde_workload::files::store::{Memory, Store};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use std::time::Duration;

pub const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const LIMIT: Duration = Duration::from_secs(20);

/// A server in a thread of this process, which ends with it.
pub struct Running {
    pub address: SocketAddr,
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<bool>>,
}

impl Running {
    pub fn start<S: Store + Send + 'static>(terms: server::Terms, store: S) -> Self {
        Self::start_at(terms, store, 0, None)
    }

    pub fn start_at<S: Store + Send + 'static>(
        terms: server::Terms,
        store: S,
        port: u16,
        receive_buffer: Option<u64>,
    ) -> Self {
        let server = Server::new(terms, store);
        let mut host = Host::open(server, LOOPBACK, port, receive_buffer).unwrap();
        let address = host.address().unwrap();
        Self::of(address, move |stopped| {
            let limit = Duration::from_secs(60);
            host.serve(stopped.as_fd(), limit).unwrap()
        })
    }

    /// Of what serves at an address until the other end of the pair is gone.
    pub fn of(
        address: SocketAddr,
        serve: impl FnOnce(UnixStream) -> bool + Send + 'static,
    ) -> Self {
        let (stop, stopped) = UnixStream::pair().unwrap();
        let thread = std::thread::spawn(move || serve(stopped));
        Self {
            address,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// Ends it; whether it was asked to, and did not end of itself.
    pub fn end(&mut self) -> bool {
        drop(self.stop.take());
        self.thread
            .take()
            .is_some_and(|thread| thread.join().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

pub fn reach(over: Over, server: SocketAddr) -> Reach {
    Reach {
        over,
        server,
        source: None,
        timers: Timers::HARD,
        limit: LIMIT,
        token: b"token".to_vec(),
        receive_buffer: None,
    }
}

pub fn client_terms(version: Version, transfer: u32, outstanding: usize) -> Terms {
    Terms {
        version,
        transfer,
        outstanding,
        stable: Stable::Sync,
        keeps_attributes: true,
    }
}

fn create(mount: &mut Mount, root: Handle, name: &str) -> Handle {
    let one = One::Create(root, name.into());
    mount.run(Job::One(one)).unwrap().handle.unwrap()
}

fn write(mount: &mut Mount, file: Handle, size_bytes: u64) -> u64 {
    let content = None;
    let job = Job::Write {
        file,
        size_bytes,
        content,
    };
    mount.run(job).unwrap().bytes
}

fn read(mount: &mut Mount, file: Handle, size_bytes: u64) -> u64 {
    let sink = Sink::Check;
    let job = Job::Read {
        file,
        size_bytes,
        sink,
    };
    mount.run(job).unwrap().bytes
}

#[test]
fn files_come_back_over_every_way() {
    let size = 3_000_001;
    for (version, over, transfer) in [
        (Version::V2, Over::Udp, 8_192),
        (Version::V2, Over::Tcp, 8_192),
        (Version::V2, Over::Udp, 61_440),
        (Version::V3, Over::Udp, 57_344),
        (Version::V3, Over::Tcp, 65_536),
        (Version::V3, Over::Tcp, 1 << 20),
    ] {
        for outstanding in [1, 8] {
            let running = Running::start(server::Terms::new(1), Memory::new(1 << 24));
            let terms = client_terms(version, transfer, outstanding);
            let mut with = reach(over, running.address);
            with.receive_buffer = Some(1 << 20);
            let mut mount = Mount::open(with, terms, 1).unwrap();
            let root = mount.mount(b"/export").unwrap();
            let file = create(&mut mount, root, "a");
            assert_eq!(write(&mut mount, file, size), size);
            assert_eq!(read(&mut mount, file, size), size);
            let names = Job::Meta {
                call: Meta::Create,
                directory: root,
                first: 0,
                count: 100,
                names: 100,
            };
            assert_eq!(mount.run(names).unwrap().calls, 100);
            let counts = mount.counts().unwrap();
            let sent = mount.session().calls().counters();
            let all = sent.calls + sent.retransmissions;
            let lost = counts.socket_dropped + counts.reassembly_failed;
            assert!(
                counts.received <= all && counts.received + lost >= all,
                "{counts:?} {all}"
            );
            assert!(counts.executed >= 100 && counts.cpu_ns > 0);
        }
    }
}

#[test]
fn strangers_get_nothing() {
    let terms = server::Terms {
        token: b"other".to_vec(),
        ..server::Terms::new(1)
    };
    let running = Running::start(terms, Memory::new(1 << 20));
    for over in [Over::Udp, Over::Tcp] {
        let with = reach(over, running.address);
        let mut mount = Mount::open(with, client_terms(Version::V3, 8_192, 1), 1).unwrap();
        let refused = mount.mount(b"/export").unwrap_err();
        assert!(refused.to_string().contains("credential"), "{refused}");
        assert!(mount.counts().is_err());
    }
}

#[test]
fn what_is_not_exported_is_refused() {
    let running = Running::start(server::Terms::new(1), Memory::new(1 << 20));
    let with = reach(Over::Tcp, running.address);
    let mut mount = Mount::open(with, client_terms(Version::V3, 8_192, 1), 1).unwrap();
    let refused = mount.mount(b"/etc").unwrap_err();
    let absent = |error: &Trouble| {
        matches!(
            error,
            Trouble::Failure(Failure::Refused {
                call: "MNT",
                status: Status::Absent
            })
        )
    };
    assert!(absent(&refused), "{refused}");
}

#[test]
fn a_server_that_is_away_for_a_while_is_waited_for() {
    for over in [Over::Udp, Over::Tcp] {
        let mut first = Running::start(server::Terms::new(1), Memory::new(1 << 20));
        let port = first.address.port();
        let mut with = reach(over, first.address);
        with.timers.first = Span::millis(100);
        let mut mount = Mount::open(with, client_terms(Version::V3, 8_192, 1), 1).unwrap();
        mount.mount(b"/export").unwrap();
        assert!(first.end());
        let later = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(400));
            Running::start_at(server::Terms::new(2), Memory::new(1 << 20), port, None)
        });
        mount.mount(b"/export").unwrap();
        drop(later.join().unwrap());
    }
}

#[test]
fn nobody_is_not_waited_for_for_ever() {
    let gone = {
        let mut running = Running::start(server::Terms::new(1), Memory::new(1 << 20));
        running.end();
        running.address
    };
    let limited = |over| Reach {
        limit: Duration::from_millis(300),
        ..reach(over, gone)
    };
    let terms = client_terms(Version::V3, 8_192, 1);
    let mut mount = Mount::open(limited(Over::Udp), terms, 1).unwrap();
    let silence = mount.mount(b"/export").unwrap_err();
    assert!(matches!(silence, Trouble::Silence { .. }), "{silence}");
    let refused = Mount::open(limited(Over::Tcp), terms, 1).unwrap_err();
    assert!(
        refused.to_string().contains("cannot connect to"),
        "{refused}"
    );
}

#[test]
fn what_is_no_record_ends_its_connection_alone() {
    use std::io::{Read, Write};
    let running = Running::start(server::Terms::new(1), Memory::new(1 << 20));
    let mut stranger = std::net::TcpStream::connect(running.address).unwrap();
    stranger.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    let mut rest = Vec::new();
    stranger.set_read_timeout(Some(LIMIT)).unwrap();
    // A reset is an end too.
    let _ = stranger.read_to_end(&mut rest);
    assert!(rest.is_empty());
    let with = reach(Over::Tcp, running.address);
    let mut mount = Mount::open(with, client_terms(Version::V3, 8_192, 1), 1).unwrap();
    mount.mount(b"/export").unwrap();
}

#[test]
fn a_small_receive_buffer_loses_what_is_counted() {
    // One daemon that is slow, and calls that are many: what has no room is lost at the socket, and sent again.
    let terms = server::Terms {
        daemons: 1,
        queue: 0,
        service: Span::millis(2),
        ..server::Terms::new(1)
    };
    let running = Running::start_at(terms, Memory::new(1 << 24), 0, Some(64 << 10));
    let mut with = reach(Over::Udp, running.address);
    with.timers.first = Span::millis(200);
    let mut mount = Mount::open(with, client_terms(Version::V2, 8_192, 32), 1).unwrap();
    let root = mount.mount(b"/export").unwrap();
    let file = create(&mut mount, root, "a");
    assert_eq!(write(&mut mount, file, 1 << 20), 1 << 20);
    let counts = mount.counts().unwrap();
    let sent = *mount.session().calls().counters();
    assert!(counts.socket_dropped > 0, "{counts:?}");
    assert_eq!(
        sent.calls + sent.retransmissions,
        counts.received + counts.socket_dropped
    );
    assert_eq!(read(&mut mount, file, 1 << 20), 1 << 20);
}
