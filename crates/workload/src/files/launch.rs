//! A launch of a measurement of files: the serving and the measuring worker.
//!
//! Model:   the server first measures itself over its own loopback: a call that does nothing and the call that is asked for, from its
//!          cache, one at a time. Then the client does the operation again and again until its budget is used up; a round is one pass
//!          over a whole file, or one call for each name. The first round is discarded. Several clients are made one after the other and go on at once. Counts of both ends are read before and after
//!          the rounds, so that what was sent, what came and what was lost can be held against each other.
//! Units:   nanoseconds, bytes; rates in bits a second; CPU time for a byte in picoseconds, calls a second in thousandths.
//! Checked: `crates/workload/tests/files_launch.rs`; `lab_files` of the command.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::fs::{self as disk, FlockOperation, Mode, OFlags};
use sonde_measure::files::{Files, Meta, Operation, Service, Store as Kept};
use sonde_measure::{Buffer, FilesFacts, Interference, Path as Route, Procedure, Spec};
use sonde_probe::agent::{FileService, Opened};
use sonde_probe::{
    Error, Measure, Measured, Result, Serve, Served, SizeMeasured, SizeServed, Watch, await_begin,
};
use sonde_stats::Series;
use sonde_sys::clock::monotonic_ns;
use sonde_sys::thread;
use sonde_units::Span;

use super::client::{Counters, Timers};
use super::counts::Counts;
use super::fs;
use super::ftp;
use super::host::{Host, Own};
use super::mount::{Mount, Over, Reach, Trouble};
use super::nfs::{Handle, Stable, Version};
use super::rounds::{Rounds, Turns, rounds};
use super::server::{self, Server};
use super::session::{Job, One, Sink, Terms};
use super::sockets;
use super::store::{Folder, Memory, Store};

/// What the command hands to its workers.
pub const SERVICE: FileService = FileService { serve, measure };

const EXPORT: &[u8] = b"/export";
/// What a server keeps in memory at most: the largest file, read and written, and names.
const MEMORY_BYTES: u64 = (3 << 30) + (64 << 20);
/// Calls that do nothing, for a round trip.
const NULLS: u64 = 50;
/// What a server takes to measure itself.
const OWN_NS: u64 = 300_000_000;
const OWN_CALLS_MAX: u64 = 50;
/// A client's receive buffer holds what is outstanding, as the kernel counts it.
const RECEIVE_BUFFER_MAX: u64 = 8 << 20;

/// The file in a worker's directory of files by which it is known, and what stands in it.
pub const SCRATCH_MARK: [&str; 2] = ["sonde-files", "sonde-files/1\n"];

/// A directory of its own, which goes with it. It is locked for as long, so that one of a worker that was killed can be known (`sonde doctor --leftovers`):
/// the number of a process says nothing outside its lab.
#[derive(Debug)]
pub(super) struct Scratch {
    path: PathBuf,
    lock: OwnedFd,
}

impl Scratch {
    pub(super) fn new() -> Result<Self> {
        Self::within(&std::env::temp_dir())
    }

    /// In a directory of the host.
    pub(super) fn within(place: &Path) -> Result<Self> {
        let name = format!("sonde-files-{}-{:x}", std::process::id(), monotonic_ns());
        let path = place.join(name);
        let made = disk::mkdir(&path, Mode::RWXU);
        made.map_err(|errno| fs::refused("make", &path, errno))?;
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let lock = disk::open(&path, flags, Mode::empty());
        let lock = lock.map_err(|errno| fs::refused("open", &path, errno))?;
        let scratch = Self { path, lock };
        let path = scratch.path.join("files");
        disk::mkdir(&path, Mode::RWXU).map_err(|errno| fs::refused("make", &path, errno))?;
        let lock = disk::flock(&scratch.lock, FlockOperation::NonBlockingLockExclusive);
        let [mark, text] = SCRATCH_MARK;
        // Without a lock one that is in use would be taken for one that was left: it has no mark, and is not found.
        if lock.is_ok() {
            let path = scratch.path.join(mark);
            let marked = std::fs::write(&path, text);
            let errno = |error| rustix::io::Errno::from_io_error(&error);
            marked.map_err(|error| {
                fs::refused(
                    "write",
                    &path,
                    errno(error).unwrap_or(rustix::io::Errno::IO),
                )
            })?;
        }
        Ok(scratch)
    }

    /// The directory of the files themselves.
    pub(super) fn path(&self) -> PathBuf {
        self.path.join("files")
    }

    pub(super) fn folder(&self) -> Result<Folder> {
        Folder::open(&self.path(), false).map_err(control("open a directory for files"))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left is in a directory for what is left.
        drop(std::fs::remove_dir_all(&self.path));
    }
}

pub(super) fn control(what: &str) -> impl Fn(std::io::Error) -> Error {
    move |source| Error::Control {
        what: what.into(),
        source,
    }
}

fn trouble(trouble: &Trouble) -> Error {
    Error::Files {
        what: trouble.to_string(),
        remedy: "look at the serving side, and at what the network loses; a longer timeout of retransmission gives slow servers time",
    }
}

fn files_of(spec: &Spec) -> Result<Files> {
    match spec.procedure {
        Procedure::Files(files) => Ok(files),
        _ => Err(Error::Unmeasurable {
            what: format!("a {} probe is not one of files", spec.probe().name()),
            remedy: "ask for files",
        }),
    }
}

const fn version(service: Service) -> Version {
    match service {
        Service::Nfs2 => Version::V2,
        // The others have a launch of their own.
        Service::Nfs3 | Service::Ftp | Service::Fs => Version::V3,
    }
}

const fn over(path: Route) -> Over {
    match path {
        Route::Tcp => Over::Tcp,
        _ => Over::Udp,
    }
}

fn server_terms(files: &Files, token: &str) -> server::Terms {
    server::Terms {
        daemons: files.daemons as usize,
        service: Span::nanos(files.service_ns),
        queue: files.queue as usize,
        transfer_max: files.transfer_bytes as u32,
        // Version 2 cannot say that it does not wait: its server is told to.
        is_async: !files.is_sync && files.service == Service::Nfs2,
        replies_kept: if files.keeps_replies { 1_024 } else { 0 },
        disk: ftp::flow::disk_terms(files.disk),
        token: token.as_bytes().to_vec(),
        export: EXPORT.to_vec(),
        boot: monotonic_ns(),
    }
}

/// Serves until it is stopped.
fn serve(request: &Serve, stop: BorrowedFd<'_>, opened: Opened<'_>) -> Result<Served> {
    let files = files_of(&request.spec)?;
    // Without it sleeps end some 50 µs late.
    sonde_sys::clock::timer_slack_min()?;
    if files.service == Service::Fs {
        return fs::serve(request, stop, opened);
    }
    match files.store {
        Kept::Memory => serve_by(request, &files, Memory::new(MEMORY_BYTES), stop, opened),
        Kept::Scratch => {
            let scratch = Scratch::new()?;
            serve_by(request, &files, scratch.folder()?, stop, opened)
        }
    }
}

fn serve_by<S: Store + Send>(
    request: &Serve,
    files: &Files,
    store: S,
    stop: BorrowedFd<'_>,
    opened: Opened<'_>,
) -> Result<Served> {
    match files.service {
        Service::Ftp => ftp::launch::serve(request, files, store, stop, opened),
        Service::Nfs2 | Service::Nfs3 | Service::Fs => {
            serve_from(request, files, store, stop, opened)
        }
    }
}

fn serve_from<S: Store + Send>(
    request: &Serve,
    files: &Files,
    store: S,
    stop: BorrowedFd<'_>,
    opened: Opened<'_>,
) -> Result<Served> {
    let spec = &request.spec;
    let server = Server::new(server_terms(files, &request.token), store);
    let buffer = files.receive_buffer_bytes;
    let mut host = Host::open(server, request.bind, 0, buffer)
        .map_err(control("open the ports of a server of files"))?;
    host.own = own(&mut host, request, files)?;
    let address = host.address().map_err(control("ask for a port"))?;
    opened(address.port())?;
    let mut interference = Interference::default();
    let watch = Watch::begin()?;
    let ended = host.serve(stop, spec.duration_max());
    let stopped = ended.map_err(control("serve files"))?;
    watch.end(&mut interference, None)?;
    was_stopped(stopped)?;
    let mut served = Served {
        sizes: vec![SizeServed::default(); spec.sizes_bytes.len()],
        refused: host.counts().refused,
        interference,
        ..Served::default()
    };
    let granted = host.counts().receive_buffer_bytes as usize;
    served.evidence.dst.socket.recv_buffer = Some(Buffer {
        asked_bytes: buffer.map(|bytes| bytes as usize),
        granted_bytes: granted,
    });
    Ok(served)
}

/// A server that nobody stops has lost its orchestrator.
pub(super) fn was_stopped(stopped: bool) -> Result<()> {
    match stopped {
        true => Ok(()),
        false => Err(Error::Files {
            what: "the server of files was not stopped within the time of the measurement".into(),
            remedy: "look at what the measuring side says",
        }),
    }
}

/// What a call takes on the server's own loopback.
fn own<S: Store + Send>(host: &mut Host<S>, request: &Serve, files: &Files) -> Result<Own> {
    let address = host.address().map_err(control("ask for a port"))?;
    let pair = UnixStream::pair().map_err(control("make a pair of sockets"))?;
    let (stop, stopped) = pair;
    std::thread::scope(|scope| {
        let served = thread::start_in(scope, "a server of files", || {
            host.serve(stopped.as_fd(), request.spec.duration_max())
        })?;
        let found = own_calls(request, files, address);
        drop(stop);
        match served.join() {
            Ok(Ok(_)) => found,
            Ok(Err(source)) => Err(control("serve files")(source)),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

fn own_calls(request: &Serve, files: &Files, server: std::net::SocketAddr) -> Result<Own> {
    let reach = Reach {
        over: over(request.spec.path),
        server,
        source: None,
        timers: timers(files),
        limit: request.spec.timeout(),
        token: request.token.as_bytes().to_vec(),
        receive_buffer: None,
    };
    let alone = Files {
        outstanding: 1,
        keeps_attributes: true,
        ..*files
    };
    let said = |error| trouble(&error);
    let mut mount = Mount::open(reach, terms(&alone), 0x5000_0000).map_err(said)?;
    let begin_ns = monotonic_ns();
    let null_ns = nulls(&mut mount, 8)?;
    // What was left of the time is for the call: the slower each is, the fewer.
    let each_ns = ((monotonic_ns() - begin_ns) / 8).max(1);
    let count = (OWN_NS / 2 / each_ns).clamp(4, OWN_CALLS_MAX);
    let size_bytes = count * files.transfer_bytes;
    let mut client = Client::open(mount, &alone, "own", size_bytes)?;
    client.prepare()?;
    client.round()?;
    let mut samples = Series::new();
    client.restore()?;
    drain(&mut client.mount, &mut Series::new());
    client.round()?;
    drain(&mut client.mount, &mut samples);
    client.leave()?;
    Ok(Own {
        null_ns,
        call_ns: samples.median().unwrap_or(0),
    })
}

const fn timers(files: &Files) -> Timers {
    Timers {
        first: Span::nanos(files.retransmit_ns),
        ..Timers::HARD
    }
}

const fn terms(files: &Files) -> Terms {
    Terms {
        version: version(files.service),
        transfer: files.transfer_bytes as u32,
        outstanding: files.outstanding as usize,
        stable: if files.is_sync {
            Stable::Sync
        } else {
            Stable::Unstable
        },
        keeps_attributes: files.keeps_attributes,
    }
}

/// Round trips of calls that do nothing, one at a time: the median.
fn nulls(mount: &mut Mount, count: u64) -> Result<u64> {
    let usual = *mount.session().terms();
    mount.session_mut().set_terms(Terms {
        outstanding: 1,
        ..usual
    });
    drain(mount, &mut Series::new());
    let done = mount.run(Job::Null { count });
    mount.session_mut().set_terms(usual);
    done.map_err(|error| trouble(&error))?;
    let mut samples = Series::new();
    drain(mount, &mut samples);
    Ok(samples.median().unwrap_or(0))
}

/// Takes what calls took.
fn drain(mount: &mut Mount, into: &mut Series) {
    while let Some(took) = mount.session_mut().poll_sample() {
        into.record(took.as_nanos());
    }
}

/// A client that does one operation again and again.
#[derive(Debug)]
struct Client {
    mount: Mount,
    operation: Operation,
    size_bytes: u64,
    names: u64,
    is_checked: bool,
    root: Handle,
    directory: Handle,
    place: String,
    file: Option<Handle>,
}

impl Client {
    fn open(mount: Mount, files: &Files, place: &str, size_bytes: u64) -> Result<Self> {
        let mut mount = mount;
        let said = |error| trouble(&error);
        let root = mount.mount(EXPORT).map_err(said)?;
        let make = One::MakeDirectory(root, place.into());
        let made = mount.run(Job::One(make)).map_err(said)?;
        let directory = made.handle.ok_or_else(|| no_handle("MKDIR"))?;
        Ok(Self {
            mount,
            operation: files.operation,
            size_bytes,
            names: files.names.into(),
            is_checked: false,
            root,
            directory,
            place: place.into(),
            file: None,
        })
    }

    fn counters(&self) -> Counters {
        *self.mount.session().calls().counters()
    }

    fn run(&mut self, job: Job) -> Result<super::session::Done> {
        self.mount.run(job).map_err(|error| trouble(&error))
    }

    fn names(&mut self, call: Meta, count: u64) -> Result<u64> {
        let job = Job::Meta {
            call,
            directory: self.directory,
            first: 0,
            count,
            names: self.names,
        };
        Ok(self.run(job)?.calls)
    }

    /// What the rounds need is there.
    fn prepare(&mut self) -> Result<()> {
        if let Operation::Meta { call } = self.operation {
            if call != Meta::Create {
                self.names(Meta::Create, self.names)?;
            }
            return Ok(());
        }
        let create = One::Create(self.directory, b"file".to_vec());
        let file = self.run(Job::One(create))?.handle;
        self.file = Some(file.ok_or_else(|| no_handle("CREATE"))?);
        self.write()?;
        Ok(())
    }

    fn write(&mut self) -> Result<u64> {
        let file = self.file.ok_or_else(|| no_handle("CREATE"))?;
        let (size_bytes, content) = (self.size_bytes, None);
        let job = Job::Write {
            file,
            size_bytes,
            content,
        };
        Ok(self.run(job)?.calls)
    }

    /// One round; the calls that it took.
    fn round(&mut self) -> Result<u64> {
        match self.operation {
            Operation::Write {} => self.write(),
            Operation::Read {} => {
                let file = self.file.ok_or_else(|| no_handle("CREATE"))?;
                let sink = if self.is_checked {
                    Sink::Check
                } else {
                    Sink::Discard
                };
                let size_bytes = self.size_bytes;
                let job = Job::Read {
                    file,
                    size_bytes,
                    sink,
                };
                Ok(self.run(job)?.calls)
            }
            Operation::Meta {
                call: Meta::Readdir,
            } => self.names(Meta::Readdir, 1),
            Operation::Meta { call } => self.names(call, self.names),
        }
    }

    /// What a round changed of names is as it was before it.
    fn restore(&mut self) -> Result<()> {
        match self.operation {
            Operation::Meta { call: Meta::Create } => self.names(Meta::Remove, self.names)?,
            Operation::Meta { call: Meta::Remove } => self.names(Meta::Create, self.names)?,
            _ => 0,
        };
        Ok(())
    }

    /// What it made is gone.
    fn leave(&mut self) -> Result<()> {
        match self.operation {
            // The last round left none.
            Operation::Meta { call: Meta::Remove } => {}
            Operation::Meta { .. } => drop(self.names(Meta::Remove, self.names)?),
            _ => {
                let remove = One::Remove(self.directory, b"file".to_vec());
                self.run(Job::One(remove))?;
            }
        }
        let remove = One::RemoveDirectory(self.root, self.place.clone().into_bytes());
        self.run(Job::One(remove))?;
        Ok(())
    }
}

fn no_handle(call: &str) -> Error {
    Error::Files {
        what: format!("the server answered {call} without a handle"),
        remedy: "look at the serving side",
    }
}

/// Measures against a serving peer.
fn measure(request: &Measure) -> Result<Measured> {
    let spec = &request.spec;
    let files = files_of(spec)?;
    sonde_sys::clock::timer_slack_min()?;
    let mut measured = Measured {
        sizes: Vec::new(),
        evidence: Default::default(),
        interference: Interference::default(),
    };
    let sizes = match files.operation.is_sized() {
        true => spec.sizes_bytes.clone(),
        // Names have none.
        false => vec![0],
    };
    for (at, size_bytes) in sizes.into_iter().enumerate() {
        let size = match files.service {
            Service::Ftp => ftp::launch::one_size(request, &files, at, size_bytes, &mut measured),
            Service::Fs => fs::one_size(request, &files, size_bytes, &mut measured),
            _ => one_size(request, &files, at, size_bytes, &mut measured),
        }?;
        measured.sizes.push(size);
    }
    Ok(measured)
}

/// What is read of both ends before and after the rounds.
#[derive(Debug, Clone, Copy)]
struct Sight {
    server: Counts,
    calls: u64,
    retransmissions: u64,
    late_replies: u64,
    client_dropped: u64,
    client_torn: u64,
    at_ns: u64,
}

impl Sight {
    /// Of all clients, and of the server as the first of them is told.
    fn of(clients: &mut [Client]) -> Result<Self> {
        let first = clients.first_mut().map(|client| client.mount.counts());
        let server = first.transpose().map_err(|error| trouble(&error))?;
        let server = server.unwrap_or_default();
        let sum = |of: fn(&Client) -> u64| clients.iter().map(of).sum();
        Ok(Self {
            server,
            calls: sum(|client| client.counters().calls),
            retransmissions: sum(|client| client.counters().retransmissions),
            late_replies: sum(|client| client.counters().unexpected),
            client_dropped: sum(|client| client.mount.dropped()),
            client_torn: sockets::reassembly_failed().unwrap_or(0),
            at_ns: monotonic_ns(),
        })
    }
}

fn one_size(
    request: &Measure,
    files: &Files,
    at: usize,
    size_bytes: u64,
    measured: &mut Measured,
) -> Result<SizeMeasured> {
    let spec = &request.spec;
    let outstanding = u64::from(files.outstanding) * (files.transfer_bytes + 4_096) * 2;
    let reach = Reach {
        over: over(spec.path),
        server: request.peer,
        source: request.source,
        timers: timers(files),
        limit: spec.timeout(),
        token: request.token.as_bytes().to_vec(),
        receive_buffer: Some(outstanding.clamp(256 << 10, RECEIVE_BUFFER_MAX)),
    };
    // Calls of one mount are not those of another.
    let first = 0x1000_0000 + ((at as u32) << 20);
    let mut clients = Vec::new();
    let mut null_ns = None;
    for nth in 0..files.clients {
        let mount = Mount::open(reach.clone(), terms(files), first);
        let mount = mount.map_err(|error| trouble(&error))?;
        let mut client = Client::open(mount, files, &place(at, nth), size_bytes)?;
        client.is_checked = spec.verify;
        client.prepare()?;
        if null_ns.is_none() {
            null_ns = Some(nulls(&mut client.mount, NULLS)?);
        }
        client.round()?;
        client.restore()?;
        drain(&mut client.mount, &mut Series::new());
        clients.push(client);
    }

    await_begin(request.begin_ns, 0)?;
    let watch = Watch::begin()?;
    let before = Sight::of(&mut clients)?;
    let rounds = rounds(&mut clients, files)?;
    let after = Sight::of(&mut clients)?;
    watch.end(&mut measured.interference, None)?;
    clients.iter_mut().try_for_each(Client::leave)?;
    let mut facts = facts(&before, &after, null_ns);
    share(&mut facts, &rounds);
    let retransmissions = facts.retransmissions;
    measured.evidence.files.insert(size_bytes, facts);
    let server_ns = after.server.cpu_ns.saturating_sub(before.server.cpu_ns);
    Ok(rounds.measured(size_bytes, retransmissions, Some(server_ns)))
}

/// The name of what a client of several has for files of one of the sizes.
pub(super) fn place(at: usize, nth: u32) -> String {
    match nth {
        0 => format!("d{at}"),
        _ => format!("d{at}-{nth}"),
    }
}

/// How several clients shared the server.
pub(super) fn share(facts: &mut FilesFacts, rounds: &Rounds) {
    if let Some([least, most]) = rounds.shares_ppm {
        facts.client_share_least_ppm = Some(least);
        facts.client_share_most_ppm = Some(most);
    }
}

fn facts(before: &Sight, after: &Sight, null_ns: Option<u64>) -> FilesFacts {
    let server = after.server.since(&before.server);
    FilesFacts {
        calls: Some(after.calls - before.calls),
        retransmissions: Some(after.retransmissions - before.retransmissions),
        late_replies: Some(after.late_replies - before.late_replies),
        received: Some(server.received),
        in_progress: Some(server.in_progress),
        repeated: Some(server.repeated),
        overflowed: Some(server.overflowed),
        // The answer to the second reading is not one of these.
        replied: Some(server.replied.saturating_sub(1)),
        lost_server_buffer: Some(server.socket_dropped),
        lost_server_fragments: Some(server.reassembly_failed),
        lost_client_buffer: Some(after.client_dropped.saturating_sub(before.client_dropped)),
        lost_client_fragments: Some(after.client_torn.saturating_sub(before.client_torn)),
        waited_ns: Some(server.waited_ns),
        held_ns: Some(server.held_ns),
        span_ns: Some(after.at_ns - before.at_ns),
        receive_buffer_bytes: Some(server.receive_buffer_bytes),
        null_ns,
        own_null_ns: Some(server.own_null_ns).filter(|ns| *ns > 0),
        own_call_ns: Some(server.own_call_ns).filter(|ns| *ns > 0),
        ..FilesFacts::default()
    }
}

impl Turns for Client {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn round(&mut self) -> Result<u64> {
        Self::round(self)
    }

    fn restore(&mut self) -> Result<()> {
        Self::restore(self)
    }

    fn drain(&mut self, into: &mut Series) {
        drain(&mut self.mount, into);
    }
}
