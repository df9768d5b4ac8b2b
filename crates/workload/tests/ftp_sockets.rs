//! Client and server of FTP on real sockets of this machine.

use crate::files_sockets::{LOOPBACK, Running};
use sonde_measure::files::{Representation, Translation};
use sonde_units::{BitRate, Bytes, Span};
use sonde_workload::files::disk;
use sonde_workload::files::ftp::client::{Client, Reach, Trouble};
use sonde_workload::files::ftp::data::Buffers;
use sonde_workload::files::ftp::flow::{Shelf, Terms};
use sonde_workload::files::ftp::host::{Host, Offer};
use sonde_workload::files::pattern;
use sonde_workload::files::store::{File, Memory, Store};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(20);

pub fn terms(representation: Representation, translation: Translation) -> Terms {
    Terms {
        copy_bytes: 10_000,
        read_ahead_bytes: 0,
        representation,
        translation,
        is_sync: true,
    }
}

pub const BINARY: (Representation, Translation) = (Representation::Binary, Translation::Block);

/// A server of a store, in a thread of this process.
pub fn start<S: Store + Send + 'static>(
    store: S,
    disk: Option<disk::Terms>,
    password: &str,
    (representation, translation): (Representation, Translation),
) -> Running {
    let offer = Offer {
        password: password.into(),
        buffers: Buffers::default(),
        terms: terms(representation, translation),
        limit: LIMIT,
    };
    let at = SocketAddr::new(LOOPBACK, 0);
    let host = Host::open(Shelf::new(store, disk), offer, at).unwrap();
    let address = host.address().unwrap();
    Running::of(address, move |stopped| {
        host.serve(stopped.as_fd(), Duration::from_secs(60))
            .unwrap()
    })
}

pub fn reach(server: SocketAddr, password: &str) -> Reach {
    Reach {
        server,
        source: None,
        password: password.into(),
        buffers: Buffers::default(),
        limit: LIMIT,
    }
}

pub fn memory() -> Shelf<Memory> {
    Shelf::new(Memory::new(1 << 26), None)
}

/// Puts bytes under a name and gets what is there then.
pub fn there_and_back(
    client: &mut Client,
    name: &str,
    content: &[u8],
    (representation, translation): (Representation, Translation),
) -> Vec<u8> {
    let (shelf, terms) = (memory(), terms(representation, translation));
    let stable = sonde_workload::files::nfs::Stable::Sync;
    let file = shelf.create(File::ROOT, b"local").unwrap();
    shelf
        .with(|store| store.write(file, 0, content, stable))
        .unwrap();
    client.set_type(representation).unwrap();
    let store = format!("STOR {name}");
    let put = client.transfer(&store, |data| shelf.send(file, data, &terms));
    assert_eq!(put.unwrap(), content.len() as u64);
    let back = shelf.create(File::ROOT, b"back").unwrap();
    let retrieve = format!("RETR {name}");
    let got = client.transfer(&retrieve, |data| shelf.receive(back, data, &terms));
    let got = got.unwrap() as u32;
    shelf.with(|store| store.read(back, 0, got).unwrap().0.to_vec())
}

#[test]
fn files_come_back_as_they_were_put() {
    for translation in [Translation::Character, Translation::Block] {
        let mut running = start(Memory::new(1 << 26), None, "token", BINARY);
        let mut client = Client::open(reach(running.address, "token")).unwrap();
        for size in [0, 1, 9_999, 10_000, 10_001, 300_000] {
            let binary = (Representation::Binary, translation);
            let content = pattern::piece(3, size);
            let back = there_and_back(&mut client, "binary", content, binary);
            assert!(back == content, "{size}");
            client.set_type(Representation::Binary).unwrap();
            assert_eq!(client.size("binary").unwrap(), size as u64);
            // Text, and bytes in which any character stands before and behind each end of a line.
            let text = (Representation::Ascii, translation);
            for content in [pattern::text(3, size), content] {
                let back = there_and_back(&mut client, "text", content, text);
                assert!(back == content, "{size}");
            }
        }
        client.quit().unwrap();
        assert!(running.end());
    }
}

#[test]
fn a_modelled_disk_holds_both_directions() {
    let disk = disk::Terms {
        rate: BitRate::mbit(16),
        seek: Span::ZERO,
        cache: Bytes(0),
    };
    let running = start(Memory::new(1 << 26), Some(disk), "", BINARY);
    let mut client = Client::open(reach(running.address, "")).unwrap();
    let begin = std::time::Instant::now();
    let content = pattern::piece(0, 100_000);
    assert!(there_and_back(&mut client, "f", content, BINARY) == content);
    // 50 ms each way: a disk is never faster than its rate.
    assert!(begin.elapsed() >= Duration::from_millis(100));
}

#[test]
fn who_has_another_token_gets_nothing() {
    let mut running = start(Memory::new(1 << 20), None, "token", BINARY);
    let error = Client::open(reach(running.address, "guess")).unwrap_err();
    assert!(
        matches!(error, Trouble::Refused { code: 530, .. }),
        "{error}"
    );
    let client = Client::open(reach(running.address, "token")).unwrap();
    client.quit().unwrap();
    assert!(running.end());
}

/// A client by hand.
struct Hand {
    lines: BufReader<TcpStream>,
}

impl Hand {
    fn open(server: SocketAddr) -> Self {
        let stream = TcpStream::connect(server).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let mut hand = Self {
            lines: BufReader::new(stream),
        };
        assert_eq!(hand.line(), "220");
        assert_eq!(hand.say("USER ftp"), "331");
        assert_eq!(hand.say("PASS x"), "230");
        assert_eq!(hand.say("TYPE I"), "200");
        hand
    }

    /// The code of the next line.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.truncate(3);
        line
    }

    fn say(&mut self, command: &str) -> String {
        let line = format!("{command}\r\n");
        self.lines.get_mut().write_all(line.as_bytes()).unwrap();
        self.line()
    }
}

#[test]
fn the_server_connects_to_its_client_alone() {
    let running = start(Memory::new(1 << 20), None, "", BINARY);
    let mut hand = Hand::open(running.address);
    let listener = TcpListener::bind((LOOPBACK, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    assert_eq!(hand.say(&format!("EPRT |1|127.0.0.2|{port}|")), "501");
    assert_eq!(hand.say(&format!("EPRT |1|127.0.0.1|{port}|")), "200");
    assert_eq!(hand.say("STOR file"), "150");
    let (mut data, _) = listener.accept().unwrap();
    data.write_all(b"by hand").unwrap();
    drop(data);
    assert_eq!(hand.line(), "226");
    let [high, low] = port.to_be_bytes();
    assert_eq!(hand.say(&format!("PORT 127,0,0,1,{high},{low}")), "200");
    assert_eq!(hand.say("RETR file"), "150");
    let mut got = String::new();
    listener
        .accept()
        .unwrap()
        .0
        .read_to_string(&mut got)
        .unwrap();
    assert_eq!((got.as_str(), hand.line().as_str()), ("by hand", "226"));
    assert_eq!(hand.say("RETR file"), "425");
    assert_eq!(hand.say("SIZE nothing"), "550");
    // What is not there is said before a connection is made.
    assert_eq!(hand.say("EPSV"), "229");
    assert_eq!(hand.say("RETR nothing"), "550");
}

#[test]
fn a_server_that_ends_takes_its_clients_along() {
    let mut running = start(Memory::new(1 << 20), None, "", BINARY);
    let mut hand = Hand::open(running.address);
    assert_eq!(hand.say("EPSV"), "229");
    // It waits for a connection that never comes.
    assert_eq!(hand.say("STOR file"), "150");
    assert!(running.end());
    let mut rest = String::new();
    // Whether it still says so or not, the connection is over.
    drop(hand.lines.read_to_string(&mut rest));
    assert!(TcpStream::connect(running.address).is_err());
}
