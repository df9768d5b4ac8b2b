//! A launch of a measurement of FTP: what is measured of each stage apart, and then of whole transfers.
//!
//! Model:   each end measures what is its own: its disk by the model's arithmetic or its store, and its part of the translation, in memory. The server
//!          adds bare transfers over its own loopback: bytes of no file, without disk or translation, by the same sockets. The client has these over
//!          the network, beside empty ones and round trips of NOOP. Then it gets or puts the file until its budget is used up, a round
//!          for each. The first is discarded, and before and after the rounds both ends must have a file of the same hash.
//! Units:   nanoseconds, bytes.
//! Checked: `crates/workload/tests/ftp_launch.rs`; `lab_ftp` of the command.

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use sonde_measure::files::{Files, Operation, Store as Kept};
use sonde_measure::{FilesFacts, Interference};
use sonde_probe::agent::Opened;
use sonde_probe::{
    Error, Measure, Measured, Result, Serve, Served, SizeMeasured, SizeServed, Watch, await_begin,
};
use sonde_stats::Series;
use sonde_sys::clock::monotonic_ns;
use sonde_sys::thread;

use super::client::{Client, Reach, Trouble};
use super::data::Buffers;
use super::flow::{self, Shelf, Terms};
use super::host::{Host, Offer};
use crate::files::launch::{Scratch, control, place, share, was_stopped};
use crate::files::nfs::Status;
use crate::files::rounds::{Turns, rounds};
use crate::files::store::{File, Memory, Store};

/// What is spent on a stage that is measured apart.
const APART_NS: u64 = 200_000_000;
/// Transfers of a stage that is measured apart.
const APART: std::ops::RangeInclusive<u64> = 3..=20;
/// Round trips of NOOP.
const NOTHINGS: u64 = 50;
/// On a loopback a segment has up to 64 KiB, and one that fills a small window waits for an acknowledgement that is delayed: windows and
/// buffers are for a network.
const OWN: Buffers = Buffers {
    window_bytes: None,
    send_bytes: None,
    receive_bytes: Some(1 << 20),
};
/// What a file takes in memory beside its bytes.
const BESIDE_BYTES: u64 = 1 << 20;

fn trouble(trouble: Trouble) -> Error {
    Error::Files {
        what: trouble.to_string(),
        remedy: "look at the serving side, at what the network loses, and at what lies between that knows FTP",
    }
}

fn refused(status: Status) -> Error {
    Error::Files {
        what: format!("the client's store refuses: {status}"),
        remedy: "look at the room of the client's host, and ask for smaller files (--size)",
    }
}

const fn is_read(files: &Files) -> bool {
    matches!(files.operation, Operation::Read {})
}

/// Serves until it is stopped, after it has measured its own stages.
pub(in crate::files) fn serve<S: Store + Send>(
    request: &Serve,
    files: &Files,
    store: S,
    stop: BorrowedFd<'_>,
    opened: Opened<'_>,
) -> Result<Served> {
    let spec = &request.spec;
    let shelf = Shelf::new(store, flow::disk_terms(files.disk));
    let offer = Offer {
        password: request.token.clone().into_bytes(),
        buffers: Buffers::of(files),
        terms: Terms::of(files),
        limit: spec.timeout(),
    };
    let at = SocketAddr::new(request.bind, 0);
    let own_offer = Offer {
        buffers: OWN,
        ..offer.clone()
    };
    let no_port = control("open the port of a server of FTP");
    let host = Host::open(shelf, own_offer, at).map_err(&no_port)?;
    let mut served = Served {
        sizes: vec![SizeServed::default(); spec.sizes_bytes.len()],
        ..Served::default()
    };
    for size_bytes in &spec.sizes_bytes {
        let facts = own(&host, request, files, *size_bytes)?;
        served.evidence.files.insert(*size_bytes, facts);
    }
    let host = Host::open(host.into_shelf(), offer, at).map_err(&no_port)?;
    let address = host.address().map_err(control("ask for a port"))?;
    opened(address.port())?;
    let mut interference = Interference::default();
    let watch = Watch::begin()?;
    let stopped = host
        .serve(stop, spec.duration_max())
        .map_err(control("serve files"))?;
    watch.end(&mut interference, None)?;
    was_stopped(stopped)?;
    served.refused = host.refused();
    served.interference = interference;
    served.evidence.dst.socket = host.socket();
    Ok(served)
}

/// The stages of the server: over its own loopback, and of its disk or store and translation.
fn own<S: Store + Send>(
    host: &Host<S>,
    request: &Serve,
    files: &Files,
    size_bytes: u64,
) -> Result<FilesFacts> {
    let address = host.address().map_err(control("ask for a port"))?;
    let (stop, stopped) = UnixStream::pair().map_err(control("make a pair of sockets"))?;
    let mut facts = std::thread::scope(|scope| {
        let served = thread::start_in(scope, "a server of FTP", || {
            host.serve(stopped.as_fd(), request.spec.duration_max())
        })?;
        let found = own_transfers(request, files, address, size_bytes);
        drop(stop);
        match served.join() {
            Ok(Ok(_)) => found,
            Ok(Err(source)) => Err(control("serve files")(source)),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })?;
    // The server is the source of what is read.
    store_stages(host.shelf(), files, size_bytes, is_read(files), &mut facts)?;
    Ok(facts)
}

fn own_transfers(
    request: &Serve,
    files: &Files,
    server: SocketAddr,
    size_bytes: u64,
) -> Result<FilesFacts> {
    let reach = Reach {
        server,
        source: None,
        password: request.token.clone(),
        buffers: OWN,
        limit: request.spec.timeout(),
    };
    let mut client = Client::open(reach).map_err(trouble)?;
    let [null_ns, call_ns] = bare(&mut client, files, size_bytes)?;
    client.quit().map_err(trouble)?;
    Ok(FilesFacts {
        own_null_ns: Some(null_ns),
        own_call_ns: Some(call_ns),
        ..FilesFacts::default()
    })
}

/// What an end's disk or store and its translation take of a file, each alone.
fn store_stages<S: Store>(
    shelf: &Shelf<S>,
    files: &Files,
    size_bytes: u64,
    is_source: bool,
    facts: &mut FilesFacts,
) -> Result<()> {
    let terms = Terms::of(files);
    let file = shelf.create(File::ROOT, b"apart").map_err(refused)?;
    shelf.fill(file, size_bytes, &terms).map_err(refused)?;
    let disk_ns = match is_source {
        true => shelf.read_ns(file, size_bytes, &terms),
        false => shelf.write_ns(file, size_bytes, &terms),
    };
    let disk_ns = disk_ns.map_err(refused)?;
    shelf
        .with(|store| store.remove(File::ROOT, b"apart"))
        .map_err(refused)?;
    // The first one takes memory that is new.
    flow::translate_ns(size_bytes, &terms, is_source);
    let translate_ns = flow::translate_ns(size_bytes, &terms, is_source);
    match is_source {
        true => (facts.source_ns, facts.translate_source_ns) = (Some(disk_ns), translate_ns),
        false => (facts.sink_ns, facts.translate_sink_ns) = (Some(disk_ns), translate_ns),
    }
    Ok(())
}

/// Transfers of no file, empty and of so many bytes: the median of each.
fn bare(client: &mut Client, files: &Files, size_bytes: u64) -> Result<[u64; 2]> {
    client.command("SITE BARE ON").map_err(trouble)?;
    let mut medians = [0; 2];
    for (size, median) in [0, size_bytes].into_iter().zip(&mut medians) {
        // One before, which opens windows and takes memory that is new.
        bare_once(client, files, size)?;
        *median = median_of(|| bare_once(client, files, size))?;
    }
    client.command("SITE BARE OFF").map_err(trouble)?;
    Ok(medians)
}

fn bare_once(client: &mut Client, files: &Files, size_bytes: u64) -> Result<()> {
    let terms = Terms::of(files);
    let moved = match is_read(files) {
        true => client.transfer(&format!("RETR {size_bytes}"), |data| {
            flow::receive_bare(data, &terms)
        }),
        false => client.transfer("STOR bare", |data| {
            flow::send_bare(size_bytes, data, &terms)
        }),
    };
    has_all(moved.map_err(trouble)?, size_bytes)
}

fn has_all(moved: u64, size_bytes: u64) -> Result<()> {
    match moved == size_bytes {
        true => Ok(()),
        false => Err(Error::Files {
            what: format!("{moved} bytes of a file of {size_bytes} were transferred"),
            remedy: "look at the serving side",
        }),
    }
}

/// The median of what something takes, done as often as fits [`APART_NS`].
fn median_of(mut once: impl FnMut() -> Result<()>) -> Result<u64> {
    let mut samples = Series::new();
    let begin_ns = monotonic_ns();
    let mut count = 0;
    while count < *APART.end() {
        let before_ns = monotonic_ns();
        if count >= *APART.start() && before_ns - begin_ns >= APART_NS {
            break;
        }
        once()?;
        samples.record(monotonic_ns() - before_ns);
        count += 1;
    }
    Ok(samples.median().unwrap_or(0))
}

/// A client that gets or puts one file again and again.
struct Getter<'s, S> {
    client: Client,
    /// The host's, of all its clients.
    shelf: &'s Shelf<S>,
    terms: Terms,
    is_read: bool,
    size_bytes: u64,
    name: String,
    file: File,
    took: Vec<u64>,
}

impl<S: Store> Getter<'_, S> {
    fn get(&mut self) -> Result<u64> {
        let (name, shelf, terms) = (&self.name, self.shelf, &self.terms);
        // What was there goes with what is got.
        let file = shelf.create(File::ROOT, name.as_bytes()).map_err(refused)?;
        let command = format!("RETR {name}");
        let got = self
            .client
            .transfer(&command, |data| shelf.receive(file, data, terms));
        got.map_err(trouble)
    }

    fn put(&mut self) -> Result<u64> {
        let (file, shelf, terms) = (self.file, self.shelf, &self.terms);
        let command = format!("STOR {}", self.name);
        let put = self
            .client
            .transfer(&command, |data| shelf.send(file, data, terms));
        put.map_err(trouble)
    }

    /// Both ends have the same file.
    fn compare(&mut self) -> Result<()> {
        let here = self.shelf.hash(self.file).map_err(refused)?;
        let command = format!("SITE HASH {}", self.name);
        let there = self.client.command(&command).map_err(trouble)?.text;
        match here == there {
            true => Ok(()),
            false => Err(Error::Files {
                what: format!(
                    "the server's file has the hash {}, the client's {here}",
                    sonde_units::plain(&there)
                ),
                remedy: "this is a defect of sonde, or of what lies between: please report it",
            }),
        }
    }

    /// The file is at both ends, and one round is made that does not count.
    fn begin(&mut self) -> Result<()> {
        self.client
            .set_type(self.terms.representation)
            .map_err(trouble)?;
        has_all(self.put()?, self.size_bytes)?;
        self.round()?;
        self.compare()?;
        self.took.clear();
        Ok(())
    }

    /// The ends have the same file still, and it goes.
    fn leave(mut self) -> Result<()> {
        self.compare()?;
        let command = format!("DELE {}", self.name);
        self.client.command(&command).map_err(trouble)?;
        self.client.quit().map_err(trouble)
    }

    /// CPU time of the server's thread, and segments that it sent again.
    fn counts(&mut self) -> Result<[u64; 2]> {
        let reply = self.client.command("SITE COUNTS").map_err(trouble)?;
        let mut words = reply.text.split(' ').map(str::parse);
        match [words.next(), words.next()] {
            [Some(Ok(cpu_ns)), Some(Ok(sent_again))] => Ok([cpu_ns, sent_again]),
            _ => Err(Error::Files {
                what: format!("the server counts `{}`", sonde_units::plain(&reply.text)),
                remedy: "use the same version of sonde on both hosts",
            }),
        }
    }
}

impl<S: Store> Turns for Getter<'_, S> {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn round(&mut self) -> Result<u64> {
        let begin_ns = monotonic_ns();
        let moved = match self.is_read {
            true => self.get(),
            false => self.put(),
        }?;
        self.took.push(monotonic_ns() - begin_ns);
        has_all(moved, self.size_bytes)?;
        Ok(1)
    }

    fn restore(&mut self) -> Result<()> {
        Ok(())
    }

    fn drain(&mut self, into: &mut Series) {
        self.took.drain(..).for_each(|took_ns| into.record(took_ns));
    }
}

/// Measures files of one size against a serving peer.
pub(in crate::files) fn one_size(
    request: &Measure,
    files: &Files,
    at: usize,
    size_bytes: u64,
    measured: &mut Measured,
) -> Result<SizeMeasured> {
    match files.store {
        Kept::Memory => {
            let store = Memory::new((u64::from(files.clients) + 1) * (size_bytes + BESIDE_BYTES));
            one_size_of(request, files, at, size_bytes, store, measured)
        }
        Kept::Scratch => {
            let scratch = Scratch::new()?;
            one_size_of(request, files, at, size_bytes, scratch.folder()?, measured)
        }
    }
}

fn one_size_of<S: Store + Send>(
    request: &Measure,
    files: &Files,
    at: usize,
    size_bytes: u64,
    store: S,
    measured: &mut Measured,
) -> Result<SizeMeasured> {
    let shelf = Shelf::new(store, flow::disk_terms(files.ftp.client_disk));
    let mut facts = FilesFacts::default();
    store_stages(&shelf, files, size_bytes, !is_read(files), &mut facts)?;
    let mut getters = Vec::new();
    for nth in 0..files.clients {
        let mut getter = getter(request, files, &shelf, place(at, nth), size_bytes)?;
        if nth == 0 {
            facts.trip_ns = Some(nothings(&mut getter.client)?);
            let [null_ns, stream_ns] = bare(&mut getter.client, files, size_bytes)?;
            (facts.null_ns, facts.stream_ns) = (Some(null_ns), Some(stream_ns));
        }
        getter.begin()?;
        getters.push(getter);
    }

    await_begin(request.begin_ns, 0)?;
    let watch = Watch::begin()?;
    let before = sight(&mut getters)?;
    let begin_ns = monotonic_ns();
    let rounds = rounds(&mut getters, files)?;
    facts.span_ns = Some(monotonic_ns() - begin_ns);
    let after = sight(&mut getters)?;
    watch.end(&mut measured.interference, None)?;
    let [server_ns, again] = [0, 1].map(|of| after[of].saturating_sub(before[of]));
    facts.calls = Some(rounds.calls);
    facts.retransmissions = Some(again);
    share(&mut facts, &rounds);
    measured.evidence.files.insert(size_bytes, facts);
    if let Some(first) = getters.first() {
        measured.evidence.src.socket = first.client.socket.clone();
    }
    getters.into_iter().try_for_each(Getter::leave)?;
    Ok(rounds.measured(size_bytes, Some(again), Some(server_ns)))
}

/// A client with a file of its own on the host's shelf.
fn getter<'s, S: Store>(
    request: &Measure,
    files: &Files,
    shelf: &'s Shelf<S>,
    name: String,
    size_bytes: u64,
) -> Result<Getter<'s, S>> {
    let reach = Reach {
        server: request.peer,
        source: request.source,
        password: request.token.clone(),
        buffers: Buffers::of(files),
        limit: request.spec.timeout(),
    };
    let terms = Terms::of(files);
    let file = shelf.create(File::ROOT, name.as_bytes()).map_err(refused)?;
    shelf.fill(file, size_bytes, &terms).map_err(refused)?;
    Ok(Getter {
        client: Client::open(reach).map_err(trouble)?,
        shelf,
        terms,
        is_read: is_read(files),
        size_bytes,
        name,
        file,
        took: Vec::new(),
    })
}

/// CPU time of the server's threads for these clients, and segments that were sent again by both ends.
fn sight<S: Store>(getters: &mut [Getter<'_, S>]) -> Result<[u64; 2]> {
    let (mut cpu_ns, mut again, mut of_server) = (0, 0, 0);
    for getter in getters {
        // The server counts segments of all its clients together.
        let counts = getter.counts()?;
        cpu_ns += counts[0];
        of_server = counts[1];
        again += getter.client.retransmitted;
    }
    Ok([cpu_ns, again + of_server])
}

/// Round trips of a command that does nothing: the median.
fn nothings(client: &mut Client) -> Result<u64> {
    let mut samples = Series::new();
    let begin_ns = monotonic_ns();
    for count in 0..NOTHINGS {
        let before_ns = monotonic_ns();
        if count >= *APART.start() && before_ns - begin_ns >= APART_NS {
            break;
        }
        client.command("NOOP").map_err(trouble)?;
        samples.record(monotonic_ns() - before_ns);
    }
    Ok(samples.median().unwrap_or(0))
}
