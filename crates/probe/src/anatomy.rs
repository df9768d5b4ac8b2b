//! Where a message's time goes: its way cut at the kernel's own time stamps.
//!
//! Model:   one message is under way at a time; it is answered by one byte, of which nothing is cut. Moments, all on
//!          CLOCK_REALTIME, which is the clock of the kernel's software stamps: the call that sends begins, the packet
//!          scheduler has the message, the driver has it, the peer's kernel took it from its driver, the reader runs (poll(2)
//!          has returned, or the attempt that found the message begins), the call that receives has returned. Between
//!          them lie `send_call`, `queue`, `wire`, `wake` and `receive`; their sum is `one_way` of the same message, by
//!          construction. `wake` is the receiving kernel's protocols and, where the reader sleeps, its waking: the same with
//!          `wait = poll` is the protocols alone. Of a message of several segments the stamps are those of the last.
//!          Hosts with the same boot id have one clock. For others the offset is found by exchanges over the connection
//!          beside, before and after; half of the shortest, and what it moved by, is the error. A part between two clocks that
//!          is smaller than the error is not told. A stamp that most messages lack is not had: the parts that it bounds
//!          are null, with the reason.
//!          Where the sender's card stamps what it sends and receives, `nic_trip` is the time between the message's leaving it
//!          and the answer's arrival at it: both by its one clock, which need not be anybody else's. What of the round trip
//!          is not within it is the sending host's.
//! Source:  Documentation/networking/timestamping.rst. Stamps cost some microseconds a message themselves.
//! Units:   nanoseconds.
//! Checked: `parts_add_up`, `a_missing_stamp_leaves_its_parts_out`, `a_clock_that_is_far_off_is_told`, `a_card_s_trip_is_by_its_one_clock`;
//!          `crates/sonde/tests/lab_paths.rs`.

mod cut;

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use sonde_channel::payload;
use sonde_channel::{Acceptor, Channel, Packet, Role, Tcp, Woken, readable};
use sonde_measure::spec::SAMPLES_MAX;
use sonde_measure::{EndedBy, Path, Quota, Spec, Wait};
use sonde_sys::clock::{monotonic_ns, realtime_ns};
use sonde_sys::netlink::Netlink;
use sonde_sys::nicstamps::NicStamps;
use sonde_sys::stamps::{self, Arrival, Sent};

use cut::Cut;

use crate::admission::{self, Visit};
use crate::pace::Hold;
use crate::serve::Admission;
use crate::talk::{Measure, Measured, Serve, Served, SizeMeasured, SizeServed};
use crate::watch::Watch;
use crate::{Error, Result, packet};

/// How often the serving side looks for the end while no message comes.
const LOOK: Duration = Duration::from_millis(20);
/// Exchanges of the time of day, before and after.
const EXCHANGES: u32 = 32;
/// An answer that did not come by now is lost.
const LOST_AFTER: Duration = Duration::from_secs(1);
/// An arrival as it is told.
const ARRIVAL_BYTES: usize = 28;

/// What the two ends say to each other beside the messages.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Tell {
    /// Who I am, and where my messages come from or go to.
    Here { boot: String, port: u16 },
    /// What time is it?
    Time {},
    /// That.
    Now { realtime_ns: u64 },
    /// Messages follow.
    Begin {},
    /// No more messages; the arrivals follow the answer.
    End { messages: u64 },
    /// All is said.
    Done {},
}

/// What carries the messages.
enum Line {
    Tcp(TcpStream),
    Udp(UdpSocket),
    Packet(Box<Packet>),
}

fn socket(what: &'static str) -> impl Fn(std::io::Error) -> Error {
    move |source| Error::Control {
        what: what.into(),
        source,
    }
}

fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}

impl Line {
    fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Udp(socket) => socket.as_fd(),
            Self::Packet(packet) => packet.fd(),
        }
    }

    /// Bounds the receives that sleep; poll(2) would be woken by the stamps too.
    fn bound(&mut self) -> Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_read_timeout(Some(LOOK)),
            Self::Udp(one) => one.set_read_timeout(Some(LOOK)),
            Self::Packet(packet) => return Ok(packet.set_within(LOOK)?),
        }
        .map_err(socket("bound receives"))
    }

    fn send(&mut self, message: &[u8]) -> Result<()> {
        match self {
            Self::Tcp(stream) => stream.write_all(message).map_err(socket("send a message")),
            Self::Udp(one) => one
                .send(message)
                .map(|_| ())
                .map_err(socket("send a message")),
            Self::Packet(packet) => Ok(packet.send(message)?),
        }
    }

    /// The number that the kernel gives to message `index` of `size` bytes.
    fn number(&self, index: u64, size: usize) -> u32 {
        match self {
            Self::Tcp(_) => ((index + 1) * size as u64).wrapping_sub(1) as u32,
            _ => index as u32,
        }
    }
}

/// One attempt to receive a message of `message.len()` bytes, of which `got` are there; it sleeps where it is to `wait`.
fn attempt(
    line: &mut Line,
    message: &mut [u8],
    got: &mut usize,
    frame: &mut [u8],
    wait: bool,
) -> Result<Option<Arrival>> {
    match line {
        Line::Tcp(stream) => {
            let Some(arrival) = stamps::recv(&*stream, &mut message[*got..], wait)? else {
                return Ok(None);
            };
            if arrival.bytes == 0 {
                return Err(Error::Abandoned);
            }
            *got += arrival.bytes;
            Ok((*got == message.len()).then_some(arrival))
        }
        Line::Udp(socket) => {
            let found = stamps::recv(&*socket, message, wait)?;
            Ok(found.filter(|arrival| arrival.bytes == message.len()))
        }
        Line::Packet(packet) => {
            let Some(arrival) = stamps::recv(packet.fd(), frame, wait)? else {
                return Ok(None);
            };
            let bytes = arrival.bytes.min(frame.len());
            Ok(packet.open_frame(&frame[..bytes], message).map(|_| arrival))
        }
    }
}

/// An arrival at the serving side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct There {
    index: u32,
    /// By the kernel; 0 for none.
    stamped_ns: u64,
    ready_ns: u64,
    returned_ns: u64,
}

impl There {
    fn write(&self, to: &mut Vec<u8>) {
        to.extend(self.index.to_le_bytes());
        for time in [self.stamped_ns, self.ready_ns, self.returned_ns] {
            to.extend(time.to_le_bytes());
        }
    }

    fn read(bytes: &[u8; ARRIVAL_BYTES]) -> Self {
        let time = |at: usize| {
            bytes[at..]
                .first_chunk()
                .map_or(0, |b| u64::from_le_bytes(*b))
        };
        Self {
            index: bytes.first_chunk().map_or(0, |b| u32::from_le_bytes(*b)),
            stamped_ns: time(4),
            ready_ns: time(12),
            returned_ns: time(20),
        }
    }
}

/// A message as the measuring side saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Here {
    index: u32,
    called_ns: u64,
    scheduled_ns: Option<u64>,
    left_ns: Option<u64>,
    acknowledged_ns: Option<u64>,
    /// By the card: when the message left, and its answer came.
    nic_ns: [Option<u64>; 2],
}

/// The peer's clock less ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Offset {
    offset_ns: i64,
    error_ns: u64,
}

pub(crate) fn measure(measure: &Measure, quota: Quota) -> Result<Measured> {
    let mut measured = Measured {
        sizes: Vec::new(),
        evidence: Default::default(),
        interference: Default::default(),
    };
    for visit in Visit::all(&measure.spec) {
        let size = visit_of(measure, quota, visit, &mut measured)?;
        measured.sizes.push(size);
    }
    Ok(measured)
}

fn visit_of(
    measure: &Measure,
    quota: Quota,
    visit: Visit,
    measured: &mut Measured,
) -> Result<SizeMeasured> {
    let spec = &measure.spec;
    let size = spec.sizes_bytes[visit.size];
    let number = admission::number(spec, visit);
    let mut control: Tcp = admission::connect(measure, number, packet::beside_of(measure))?;
    admission::hello_stream(&mut control, measure, visit)?;
    let (mut line, one_clock) = open_measuring(&mut control, measure, visit)?;
    line.bound()?;
    let nic = nic_stamps(measure);
    stamps::stamp_sent(line.fd(), spec.path == Path::Tcp)?;
    let before = match one_clock {
        true => None,
        false => Some(offset(&mut control)?),
    };
    admission::send_frame(&mut control, &Tell::Begin {})?;
    let mut trips = Trips {
        spec,
        quota,
        line,
        message: payload::message(size as usize),
        count: 0,
        lost: 0,
        hold: Hold::new(spec.knobs.pause_ns(size)),
    };
    let watch = Watch::begin()?;
    let (sent, ended_by) = trips.all()?;
    watch.end(&mut measured.interference, None)?;
    let messages = trips.count;
    admission::send_frame(&mut control, &Tell::End { messages })?;
    let arrivals = arrivals(&mut control)?;
    let clock = match before {
        None => Offset {
            offset_ns: 0,
            error_ns: 0,
        },
        Some(before) => joined(before, offset(&mut control)?),
    };
    admission::send_frame(&mut control, &Tell::Done {})?;
    let card = nic.as_ref().map(|_| ()).map_err(String::clone);
    let nic_trips = cut::nic_trips(&sent, card);
    let cut = Cut::of(&sent, &arrivals, clock);
    let facts = measured.evidence.size(size);
    facts.ended_by = Some(ended_by);
    facts.clock_error_ns = Some(clock.error_ns);
    facts.anatomy_lost = Some(trips.lost);
    facts.out_of_order = Some(cut.out_of_order);
    Ok(SizeMeasured {
        moments: None,
        size_bytes: size,
        measurements: cut.measurements(spec.path, nic_trips),
        round_trips: messages,
        sent: None,
    })
}

/// The stamps of the card that leads to the peer, on for as long as they are held; or why there are none.
fn nic_stamps(measure: &Measure) -> std::result::Result<NicStamps, String> {
    let way = Netlink::open().and_then(|mut netlink| {
        let way = netlink.way_to(measure.peer.ip())?;
        netlink.link(way.ifindex)
    });
    match way {
        Ok(link) => NicStamps::on(&link.name),
        Err(error) => Err(format!(
            "the interface that leads to the peer is not known: {error}"
        )),
    }
}

/// Opens the line and says whether both ends have one clock.
fn open_measuring(control: &mut Tcp, measure: &Measure, visit: Visit) -> Result<(Line, bool)> {
    let spec = &measure.spec;
    let peer = control.peer().ip();
    let boot = boot_id();
    let here = |control: &mut Tcp, port: u16| -> Result<(bool, u16)> {
        let boot = boot.clone();
        admission::send_frame(control, &Tell::Here { boot, port })?;
        hear_here(control)
    };
    Ok(match spec.path {
        Path::Packet | Path::Xdp => {
            let packet = packet::open(control, &measure.token, spec, visit, Role::Measuring)?;
            let (same, _) = here(control, 0)?;
            (Line::Packet(Box::new(packet)), same)
        }
        Path::Udp => {
            let any: IpAddr = if peer.is_ipv4() {
                [0; 4].into()
            } else {
                [0u16; 8].into()
            };
            let one = UdpSocket::bind((any, 0)).map_err(socket("open a UDP socket"))?;
            let own = one.local_addr().map_err(socket("read an address"))?;
            let (same, port) = here(control, own.port())?;
            one.connect((peer, port)).map_err(socket("join over UDP"))?;
            (Line::Udp(one), same)
        }
        _ => {
            let (same, port) = here(control, 0)?;
            let there = Measure {
                moments: false,
                peer: SocketAddr::new(peer, port),
                ..measure.clone()
            };
            let number = admission::number(spec, visit).saturating_add(admission::BESIDE);
            let tcp: Tcp = admission::connect(&there, number, packet::beside_of(measure))?;
            let mut stream = plain(&tcp)?;
            stream
                .write_all(measure.token.as_bytes())
                .map_err(socket("say the token"))?;
            // The stamps count bytes from here.
            stream
                .read_exact(&mut [0])
                .map_err(socket("be admitted over TCP"))?;
            (Line::Tcp(stream), same)
        }
    })
}

fn hear_here(control: &mut Tcp) -> Result<(bool, u16)> {
    match admission::recv_frame(control)? {
        Tell::Here { boot, port } => Ok((!boot.is_empty() && boot == boot_id(), port)),
        other => Err(out_of_turn(&other)),
    }
}

fn out_of_turn(said: &Tell) -> Error {
    Error::Integrity(format!("the peer broke the protocol: {said:?}"))
}

/// The peer's time of day less ours, by the shortest of some exchanges.
fn offset(control: &mut Tcp) -> Result<Offset> {
    let mut best: Option<Offset> = None;
    for _ in 0..EXCHANGES {
        let before = realtime_ns();
        admission::send_frame(control, &Tell::Time {})?;
        let there = match admission::recv_frame(control)? {
            Tell::Now { realtime_ns } => realtime_ns,
            other => return Err(out_of_turn(&other)),
        };
        let after = realtime_ns();
        let error_ns = after.saturating_sub(before).div_ceil(2);
        let offset_ns = (i128::from(there) - i128::from(before) - i128::from(error_ns)) as i64;
        if best.is_none_or(|best| error_ns < best.error_ns) {
            best = Some(Offset {
                offset_ns,
                error_ns,
            });
        }
    }
    best.ok_or_else(|| Error::Integrity("no exchange of the time was made".into()))
}

fn joined(before: Offset, after: Offset) -> Offset {
    let moved_ns = after.offset_ns.abs_diff(before.offset_ns);
    Offset {
        offset_ns: before.offset_ns + (after.offset_ns - before.offset_ns) / 2,
        error_ns: before.error_ns.max(after.error_ns) + moved_ns.div_ceil(2),
    }
}

fn arrivals(control: &mut Tcp) -> Result<Vec<There>> {
    let count = match admission::recv_frame(control)? {
        Tell::End { messages } => messages,
        other => return Err(out_of_turn(&other)),
    };
    if count > SAMPLES_MAX {
        return Err(Error::Integrity(format!("{count} arrivals were announced")));
    }
    let mut all = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let mut bytes = [0; ARRIVAL_BYTES];
        control.recv(&mut bytes)?;
        all.push(There::read(&bytes));
    }
    Ok(all)
}

/// Messages of one size.
struct Trips<'a> {
    spec: &'a Spec,
    quota: Quota,
    line: Line,
    message: Vec<u8>,
    count: u64,
    lost: u64,
    hold: Hold,
}

impl Trips<'_> {
    fn all(&mut self) -> Result<(Vec<Here>, EndedBy)> {
        let quota = self.quota;
        for _ in 0..quota.warmup {
            self.one()?;
        }
        let mut sent = Vec::with_capacity(quota.samples_max as usize);
        let deadline_ns = monotonic_ns() + quota.budget_ns;
        while (sent.len() as u64) < quota.samples_max {
            sent.extend(self.one()?);
            if monotonic_ns() >= deadline_ns {
                return Ok((sent, EndedBy::Budget));
            }
        }
        Ok((sent, EndedBy::Samples))
    }

    /// One message and its answer; `None` when either was lost.
    fn one(&mut self) -> Result<Option<Here>> {
        let index = self.count;
        self.count += 1;
        payload::stamp(&mut self.message, index as u32);
        self.hold.wait();
        let called_ns = realtime_ns();
        self.line.send(&self.message)?;
        let Some(answer) = self.answered(index)? else {
            self.lost += 1;
            return Ok(None);
        };
        let mut here = Here {
            index: index as u32,
            called_ns,
            scheduled_ns: None,
            left_ns: None,
            acknowledged_ns: None,
            nic_ns: [None, answer.hardware_ns],
        };
        let number = self.line.number(index, self.message.len());
        while let Some(stamp) = stamps::next_sent(self.line.fd())? {
            if stamp.number != number {
                continue;
            }
            if stamp.what == Sent::Left {
                here.nic_ns[0] = here.nic_ns[0].or(stamp.hardware_ns);
            }
            let of = match stamp.what {
                Sent::Scheduled => &mut here.scheduled_ns,
                Sent::Left => &mut here.left_ns,
                Sent::Acknowledged => &mut here.acknowledged_ns,
            };
            // The first of several: of a message that was sent again, what first left.
            *of = of.or(stamp.software_ns);
        }
        Ok(Some(here))
    }

    /// Waits for the answer to message `index`, one byte.
    fn answered(&mut self, index: u64) -> Result<Option<Arrival>> {
        let began = Instant::now();
        let mut frame = [0; 256];
        loop {
            let mut answer = [0];
            let mut got = 0;
            let sleeps = self.spec.wait == Wait::Block;
            let line = &mut self.line;
            if let Some(arrival) = attempt(line, &mut answer, &mut got, &mut frame, sleeps)? {
                if answer[0] == index as u8 {
                    return Ok(Some(arrival));
                }
                continue; // A late one.
            }
            let timeout = match self.line {
                Line::Tcp(_) => self.spec.timeout(),
                _ => LOST_AFTER.min(self.spec.timeout()),
            };
            if began.elapsed() >= timeout {
                return match self.line {
                    Line::Tcp(_) => Err(Error::Integrity(
                        "a message over TCP was not answered".into(),
                    )),
                    _ => Ok(None),
                };
            }
        }
    }
}

/// The serving side.
pub(crate) fn serve(
    mut acceptor: Acceptor,
    quota: Quota,
    serve: &Serve,
    stop: BorrowedFd<'_>,
) -> Result<Served> {
    let mut admission = Admission::new(serve, acceptor.local());
    let mut served = Served::default();
    loop {
        let mut control = admission.accept(&mut acceptor, served.sizes.len(), stop)?;
        acceptor.watch()?;
        let Some((visit, size)) = admission.hello(&mut control)? else {
            continue;
        };
        let line = open_serving(&mut control, &mut admission, visit, stop)?;
        stamps::stamp_received(line.fd())?;
        tell_time(&mut control, false)?;
        let watch = Watch::begin()?;
        let mut ear = Ear {
            serve,
            arrivals_max: (quota.samples_max + quota.warmup) as usize * 2,
            control,
            line,
            message: vec![0; size],
            frame: vec![0; size + 256],
            last: None,
            arrivals: Vec::new(),
        };
        ear.listen()?;
        watch.end(&mut served.interference, None)?;
        let messages = ear.arrivals.len() as u64;
        admission::send_frame(&mut ear.control, &Tell::End { messages })?;
        let mut bytes = Vec::with_capacity(ear.arrivals.len() * ARRIVAL_BYTES);
        ear.arrivals.iter().for_each(|one| one.write(&mut bytes));
        ear.control.send(&bytes)?;
        tell_time(&mut ear.control, true)?;
        served.refused = admission.refused_at(&mut acceptor);
        served.sizes.push(SizeServed {
            bytes: messages * size as u64,
            messages,
            ..SizeServed::default()
        });
        if visit.last {
            return Ok(served);
        }
        admission.since = Instant::now();
    }
}

/// Tells the time of day until messages begin, or all is done.
fn tell_time(control: &mut Tcp, to_the_end: bool) -> Result<()> {
    loop {
        match admission::recv_frame(control)? {
            Tell::Time {} => {
                let realtime_ns = realtime_ns();
                admission::send_frame(control, &Tell::Now { realtime_ns })?;
            }
            Tell::Begin {} if !to_the_end => return Ok(()),
            Tell::Done {} if to_the_end => return Ok(()),
            other => return Err(out_of_turn(&other)),
        }
    }
}

fn open_serving(
    control: &mut Tcp,
    admission: &mut Admission<'_>,
    visit: Visit,
    stop: BorrowedFd<'_>,
) -> Result<Line> {
    let serve = admission.serve;
    let spec = &serve.spec;
    let peer = control.peer().ip();
    let tell = |control: &mut Tcp, port: u16| {
        let boot = boot_id();
        admission::send_frame(control, &Tell::Here { boot, port })
    };
    match spec.path {
        Path::Packet | Path::Xdp => {
            let packet = packet::open(control, &serve.token, spec, visit, Role::Serving)?;
            hear_here(control)?;
            tell(control, 0)?;
            Ok(Line::Packet(Box::new(packet)))
        }
        Path::Udp => {
            let one = UdpSocket::bind((serve.bind, 0)).map_err(socket("open a UDP socket"))?;
            let own = one.local_addr().map_err(socket("read an address"))?;
            let (_, port) = hear_here(control)?;
            // From here on with this peer only.
            one.connect((peer, port)).map_err(socket("join over UDP"))?;
            tell(control, own.port())?;
            Ok(Line::Udp(one))
        }
        _ => {
            let own = SocketAddr::new(serve.bind, 0);
            let mut acceptor = Acceptor::bind(own, packet::beside(spec))?;
            let number = admission::number(spec, visit).saturating_add(admission::BESIDE);
            acceptor.expect(admission::announced(serve, std::iter::once(number)));
            hear_here(control)?;
            tell(control, acceptor.local().port())?;
            admitted(&mut acceptor, admission, stop)
        }
    }
}

/// The connection that says the token; others are turned away.
fn admitted(
    acceptor: &mut Acceptor,
    admission: &mut Admission<'_>,
    stop: BorrowedFd<'_>,
) -> Result<Line> {
    let token = admission.serve.token.as_bytes();
    loop {
        let tcp = admission.next(acceptor, stop)?;
        let mut stream = plain(&tcp)?;
        let timed = stream.set_read_timeout(Some(Duration::from_secs(1)));
        timed.map_err(socket("bound receives"))?;
        let mut said = vec![0; token.len()];
        if stream.read_exact(&mut said).is_ok() && said == token {
            stream.write_all(&[0]).map_err(socket("admit the peer"))?;
            admission.refused_at(acceptor);
            return Ok(Line::Tcp(stream));
        }
        admission.turn_away(tcp.peer(), "wrong token");
    }
}

/// A connection as the standard library has it.
fn plain(tcp: &Tcp) -> Result<TcpStream> {
    let fd = tcp.as_fd().try_clone_to_owned();
    Ok(fd.map_err(socket("keep a connection"))?.into())
}

/// Who hears the messages.
struct Ear<'a> {
    serve: &'a Serve,
    arrivals_max: usize,
    control: Tcp,
    line: Line,
    message: Vec<u8>,
    frame: Vec<u8>,
    last: Option<u32>,
    arrivals: Vec<There>,
}

impl Ear<'_> {
    fn listen(&mut self) -> Result<()> {
        let polls = self.serve.spec.wait == Wait::Poll;
        let (mut got, mut heard) = (0, Instant::now());
        let mut looked = heard;
        loop {
            if !polls {
                let fds = [self.line.fd(), self.control.as_fd()];
                let woken = readable(&fds, LOOK).map_err(socket("wait for a message"))?;
                if woken == Woken::Readable(1) && self.ended()? {
                    return Ok(());
                }
            }
            let ready_ns = realtime_ns();
            let (line, message) = (&mut self.line, &mut self.message);
            match attempt(line, message, &mut got, &mut self.frame, false)? {
                Some(arrival) => {
                    let returned_ns = realtime_ns();
                    got = 0;
                    if self.arrivals.len() < self.arrivals_max {
                        self.arrived(arrival, ready_ns, returned_ns)?;
                    }
                    let answer = self.message[0];
                    self.line.send(&[answer])?;
                    heard = Instant::now();
                }
                None if looked.elapsed() >= LOOK => {
                    looked = Instant::now();
                    let fds = [self.control.as_fd()];
                    let woken = readable(&fds, Duration::ZERO).map_err(socket("look"))?;
                    if woken == Woken::Readable(0) && self.ended()? {
                        return Ok(());
                    }
                    if heard.elapsed() >= self.serve.spec.timeout() {
                        return Err(Error::Abandoned);
                    }
                }
                None => std::hint::spin_loop(),
            }
        }
    }

    fn ended(&mut self) -> Result<bool> {
        match admission::recv_frame(&mut self.control)? {
            Tell::End { .. } => Ok(true),
            other => Err(out_of_turn(&other)),
        }
    }

    /// Keeps an arrival; its whole number follows from the last one's and its own lowest byte.
    fn arrived(&mut self, arrival: Arrival, ready_ns: u64, returned_ns: u64) -> Result<()> {
        let low = self.message[0];
        let index = match self.last {
            None => u32::from(low),
            Some(last) => last.wrapping_add(low.wrapping_sub(last as u8).into()),
        };
        let again = self.last == Some(index);
        self.last = Some(index);
        payload::check(&self.message, index).map_err(|mismatch| {
            let peer = self.control.peer();
            sonde_channel::Error::Payload { peer, mismatch }
        })?;
        if !again {
            self.arrivals.push(There {
                index,
                stamped_ns: arrival.software_ns.unwrap_or(0),
                ready_ns,
                returned_ns,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
