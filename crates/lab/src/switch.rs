//! The switch: frames between the hosts' interfaces and the model, by the real clock.
//!
//! Model:   one thread. Frames that have arrived are offered in the order of their stamps; what the model delivers by now is
//!          written; then the thread sleeps until 60 us before the model's next instant, and watches the clock and
//!          the ports from there. `now` never goes back: a stamp before it is moved, and the move counts as lateness. A station
//!          that wants no more has its gate shut; what was under way finds room in the model, or waits here.
//! Checked: the end-to-end tests; parity of the ledger with the virtual clock.

mod attach;
mod broken;
mod files;
mod seat;
mod talk;

use crate::config::{Config, Info, MTU_MAX};
use crate::control::{Answer, HostAnswer, HostConfig, HostRequest, Request, TalkError, hear, say};
use crate::interface;
use crate::meter::{AttachmentLosses, FlowReport, Meter, Report};
use crate::pool::Pool;
use crate::port::{Arrival, PORTION, Port};
use crate::wire::Addresses;
use crate::{cradle, exec, furnish, ids, libraries, wire};
use files::Files;
use sonde_link::ledger::Entry;
use sonde_link::{
    Admission, Change, Counters, Event, Fault, FlowCounters, FrameId, HostPort, Kind, Network,
    Subnets, join,
};
use sonde_measure::Loss;
use sonde_sys::epoll::{Epoll, Event as Ready, Interest};
use sonde_sys::message;
use sonde_sys::namespace::{self, Kind as Space, Namespaces};
use sonde_sys::packet::Batch;
use sonde_sys::{clock, cpu, mount, process};
use sonde_units::{Instant, Ratio};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::time::Duration;

/// Before an instant of the model the switch stays awake for this long.
const SPIN_NS: u64 = 60_000;
/// Memory for frames under way; beyond it no more are read until some have left.
const FRAMES_BYTES_MAX: usize = 512 << 20;
/// The real-time clock is slewed; its distance is taken anew this often.
const OFFSET_EVERY_NS: u64 = 500_000_000;
const TOKEN_CONTROL: u64 = u64::MAX;
const TOKEN_LISTENER: u64 = u64::MAX - 1;
const TOKEN_HOST: u64 = 1 << 32;
const TOKEN_VISITOR: u64 = 2 << 32;
/// Programs of the lab that can change the network at a time.
const VISITORS_MAX: usize = 16;

/// Why the switch could not start, or ended.
#[derive(Debug, thiserror::Error)]
enum SwitchError {
    #[error("{0}")]
    Call(#[from] sonde_sys::Error),
    #[error("{0}")]
    Talk(#[from] TalkError),
    #[error("{what}: {problem}")]
    File {
        what: &'static str,
        problem: std::io::Error,
    },
    #[error("{0}")]
    Listen(#[from] exec::ListenError),
    #[error("keep the machine from the lab's root: {0}")]
    Guard(#[from] crate::host::HostError),
    #[error("{0}")]
    Spec(#[from] sonde_link::SpecError),
    #[error("the site is wrong: {0}")]
    Site(String),
    #[error("{0}")]
    Unwritten(String),
    #[error("h{number} did not come up: {problem}")]
    Host { number: u16, problem: String },
    #[error(
        "an MTU of {0} bytes is too large for the lab, whose interfaces carry at most {MTU_MAX}; lower it, as in `:mtu=9000`"
    )]
    Mtu(u64),
}

fn file(what: &'static str) -> impl FnOnce(std::io::Error) -> SwitchError {
    move |problem| SwitchError::File { what, problem }
}

/// Runs the switch; standard input is the socket to the command.
pub(crate) fn run() -> i32 {
    let socket = std::io::stdin();
    let outcome = Switch::come_up(&socket).and_then(|mut switch| switch.serve());
    match outcome {
        Ok(()) => 0,
        Err(error) => {
            // If the command is gone too there is nobody left to tell.
            drop(say(&socket, &Answer::Failed(error.to_string()), &[]));
            1
        }
    }
}

/// A host's init as the switch knows it.
struct HostProcess {
    child: Child,
    socket: OwnedFd,
    is_gone: bool,
    /// How it ended, once it was collected.
    end: Option<ExitStatus>,
}

struct Switch {
    control: OwnedFd,
    /// Where programs of the lab come in that change the network, and those that are in.
    listener: OwnedFd,
    visitors: Vec<Option<OwnedFd>>,
    net: Box<dyn Network + Send>,
    addresses: Addresses,
    /// By port: whose it is.
    ends: Vec<HostPort>,
    ports: Vec<Port>,
    hosts: Vec<HostProcess>,
    pool: Pool,
    batch: Batch,
    inbox: Vec<Arrival>,
    epoll: Epoll,
    epoch_ns: u64,
    /// The latest time that the model was told, on CLOCK_MONOTONIC.
    now_ns: u64,
    realtime: clock::RealtimeOffset,
    realtime_at_ns: u64,
    meter: Meter,
    marked: Mark,
    files: Files,
    /// Whether ports are suspended because too many frames are under way.
    full: bool,
    /// Whether an interface loses its carrier with its line.
    fail_over: bool,
    /// Which CPUs this thread uses, where it may choose.
    seat: Option<seat::Seat>,
    cpu_plan: String,
    stopping: bool,
}

/// Where counting began.
struct Mark {
    at_ns: u64,
    cpu_ns: u64,
    counters: Counters,
    attachment: AttachmentLosses,
    toggles: (u64, u64),
    overloads: u64,
    seat: (u64, u64),
}

impl Switch {
    fn come_up(socket: impl AsFd) -> Result<Self, SwitchError> {
        process::die_with_parent(0)?;
        let control = socket
            .as_fd()
            .try_clone_to_owned()
            .map_err(file("keep the socket to the command"))?;
        let (request, fds) = hear::<Request>(&control)?;
        let Request::Start(config) = request else {
            return Err(TalkError::Ended.into());
        };
        let mtu = config.site.mtu();
        if mtu > MTU_MAX {
            return Err(SwitchError::Mtu(mtu));
        }
        let net = join(&config.site, config.seed, Vec::new())?;
        let subnets = config.site.subnets().map_err(SwitchError::Site)?;
        let addresses = Addresses::new(&subnets);
        cpu::raise_nofile()?;
        let mut notes = Vec::new();
        if let Err(error) = cpu::short_slice(0) {
            notes.push(format!(
                "the switch has the kernel's usual time slice: {error}"
            ));
        }
        let guarded = ids::is_root_outside();
        house(&config, guarded)?;
        let home = namespace::open(0, Space::Net)?;
        let (attachment, attachment_reason) = attach::choose(&control, &config, &home)?;
        let hosts = start_hosts(&config, (&subnets, &addresses), guarded)?;
        if !config.cpus.switch.is_empty() {
            cpu::pin(&config.cpus.switch)?;
        }
        let (ports, settings) = attach::build(
            &control,
            (&config, &addresses, &subnets),
            (attachment, &home),
            &hosts,
        )?;
        let frame_bytes = mtu as usize + wire::HEADER + 4;
        let files = Files::open(&config, fds, frame_bytes)?;
        let epoll = Epoll::new()?;
        for port in &ports {
            epoll.add(port.fd(), u64::from(port.number.0), Interest::Read)?;
        }
        for (index, host) in hosts.iter().enumerate() {
            epoll.add(&host.socket, TOKEN_HOST + index as u64, Interest::Read)?;
        }
        epoll.add(&control, TOKEN_CONTROL, Interest::Read)?;
        let listener = exec::listen(&exec::listener_path(), config.user, config.share)?;
        epoll.add(&listener, TOKEN_LISTENER, Interest::Read)?;
        let epoch_ns = clock::monotonic_ns();
        let info = Info {
            attachment,
            attachment_reason,
            backpressure: "gate".into(),
            settings,
            notes,
            switch_pid: std::process::id(),
            epoch_ns,
        };
        say(&control, &Answer::Ready(Box::new(info)), &[])?;
        let mut switch = Self {
            control,
            listener,
            visitors: Vec::new(),
            net,
            addresses,
            ends: subnets.ends,
            ports,
            hosts,
            pool: Pool::new(frame_bytes),
            batch: Batch::new(PORTION, frame_bytes),
            inbox: Vec::new(),
            epoll,
            epoch_ns,
            now_ns: epoch_ns,
            realtime: clock::realtime_minus_monotonic_ns(),
            realtime_at_ns: epoch_ns,
            meter: Meter::new(),
            marked: Mark {
                at_ns: epoch_ns,
                cpu_ns: 0,
                counters: Counters::default(),
                attachment: AttachmentLosses::default(),
                toggles: (0, 0),
                overloads: 0,
                seat: (0, 0),
            },
            files,
            full: false,
            fail_over: config.fail_over,
            seat: seat::Seat::of(&config.cpus, epoch_ns),
            cpu_plan: config.cpus.name,
            stopping: false,
        };
        switch.mark()?;
        Ok(switch)
    }

    /// Moves frames until told to stop.
    fn serve(&mut self) -> Result<(), SwitchError> {
        let mut events = [Ready::EMPTY; 80];
        let mut readable: Vec<u64> = Vec::with_capacity(events.len());
        while !self.stopping {
            let timeout = self.next_wait();
            readable.clear();
            readable.extend(
                self.epoll
                    .wait(&mut events, timeout)?
                    .iter()
                    .map(Ready::token),
            );
            // A port that was read in full portions is read on until it is found empty: no event tells that it is.
            let overloaded = self
                .ports
                .iter()
                .filter(|port| port.overloaded)
                .map(|port| u64::from(port.number.0));
            readable.extend(overloaded);
            for &token in &readable {
                match token {
                    TOKEN_CONTROL => self.on_control()?,
                    TOKEN_LISTENER => self.on_door()?,
                    token if token >= TOKEN_VISITOR => {
                        self.on_visitor((token - TOKEN_VISITOR) as usize)?;
                    }
                    token if token >= TOKEN_HOST => self.on_host((token - TOKEN_HOST) as usize)?,
                    token => self.read(token as usize)?,
                }
            }
            self.take_in()?;
            self.give_out()?;
        }
        self.end_files()
    }

    /// How long to wait for the ports: no time at all when an instant of the model is near, for ever when idle.
    fn next_wait(&self) -> Option<Duration> {
        if self
            .ports
            .iter()
            .any(|port| port.overloaded && !port.suspended)
        {
            return Some(Duration::ZERO);
        }
        let due_ns = self.epoch_ns + self.net.poll_at()?.as_picos().div_ceil(1_000);
        Some(Duration::from_nanos(
            due_ns.saturating_sub(clock::monotonic_ns() + SPIN_NS),
        ))
    }

    fn read(&mut self, index: usize) -> Result<(), SwitchError> {
        let port = &mut self.ports[index];
        if port.suspended || port.is_gone {
            return Ok(());
        }
        let realtime = self.realtime;
        let read = port.read(&mut self.pool, &mut self.batch, &mut self.inbox, |stamp| {
            realtime.monotonic_ns(stamp)
        });
        self.unless_gone(index, read)?;
        self.settle_gate(index)
    }

    /// Offers what was read, in the order of the stamps.
    fn take_in(&mut self) -> Result<(), SwitchError> {
        if self.inbox.is_empty() {
            return Ok(());
        }
        let mut inbox = std::mem::take(&mut self.inbox);
        inbox.sort_by_key(|arrival| arrival.stamp_ns);
        for arrival in inbox.drain(..) {
            let slot = self.pool.slot(arrival.id);
            if Port::is_own(&slot.bytes[..slot.length]) {
                self.pool.give(arrival.id);
                continue;
            }
            let index = usize::from(arrival.port.0);
            if self.ports[index].pending.is_empty() {
                self.offer(index, arrival.id, arrival.stamp_ns)?;
            } else {
                self.ports[index].pending.push_back(arrival.id);
            }
            self.settle_gate(index)?;
        }
        self.inbox = inbox;
        Ok(())
    }

    /// Offers one frame; true if it was taken. Otherwise it waits at the head of the port's line.
    fn offer(&mut self, index: usize, id: FrameId, stamp_ns: u64) -> Result<bool, SwitchError> {
        let clamp_ns = self.now_ns.saturating_sub(stamp_ns);
        self.now_ns = self.now_ns.max(stamp_ns);
        let now = Instant::from_nanos(self.now_ns - self.epoch_ns);
        let number = self.ports[index].number;
        let slot = self.pool.slot(id);
        let Some(frame) = wire::describe(&slot.bytes[..slot.length], number, id, &self.addresses)
        else {
            self.pool.give(id);
            return Ok(true);
        };
        (slot.taken, slot.clamp_ns, slot.from) = (now, clamp_ns, index);
        slot.resolves = match frame.kind {
            Kind::Resolve(of) => Some((number, of)),
            Kind::Ip | Kind::Routed(_) | Kind::Arp | Kind::Other => None,
        };
        let admission = self.net.offer(now, frame);
        self.files.append(&Entry::Offer {
            at: now,
            frame,
            admission,
        });
        if admission == Admission::Blocked {
            self.ports[index].pending.push_front(id);
            return Ok(false);
        }
        if clamp_ns > 0 {
            self.meter.clamped(clamp_ns);
        }
        let port = &mut self.ports[index];
        if let Some(seat) = &mut self.seat {
            seat.taken(port.under_way > 0);
        }
        port.under_way += 1;
        self.capture(number, id, self.now_ns);
        Ok(true)
    }

    /// Opens or shuts a port's gate, and stops or resumes reading it, as its station and its backlog ask for.
    fn settle_gate(&mut self, index: usize) -> Result<(), SwitchError> {
        let full = self.pool.used_bytes() > FRAMES_BYTES_MAX;
        self.full |= full;
        let port = &mut self.ports[index];
        let wanted = self.net.ready(port.number, Default::default())
            && !port.overloaded
            && port.pending.is_empty()
            && !full;
        if port.is_gone {
            return Ok(());
        }
        let set = if wanted {
            port.gate.open()
        } else {
            port.gate.close()
        };
        self.unless_gone(index, set)?;
        let port = &mut self.ports[index];
        if port.is_gone {
            return Ok(());
        }
        let suspend = !port.pending.is_empty() || full;
        if suspend != port.suspended {
            port.suspended = suspend;
            let interest = if suspend {
                Interest::Neither
            } else {
                Interest::Read
            };
            self.epoll
                .modify(port.fd(), u64::from(port.number.0), interest)?;
        }
        Ok(())
    }

    /// Carries out what the model says has happened by now.
    fn give_out(&mut self) -> Result<(), SwitchError> {
        let clock_ns = clock::monotonic_ns();
        self.now_ns = self.now_ns.max(clock_ns);
        let now = Instant::from_nanos(self.now_ns - self.epoch_ns);
        while let Some(event) = self.net.poll(now) {
            let written = match event {
                Event::Deliver {
                    at,
                    id,
                    to,
                    mark,
                    edit,
                } => Some(self.deliver(at, id, to, (mark, edit))?),
                _ => None,
            };
            if self.files.has_ledger()
                && let Some(entry) = Entry::of_event(&event, written)
            {
                self.files.append(&entry);
            }
            match event {
                Event::Done { id } => {
                    let from = self.pool.slot(id).from;
                    self.ports[from].under_way -= 1;
                    self.pool.give(id);
                }
                Event::Ready { port, .. } => self.on_ready(usize::from(port.0))?,
                Event::State {
                    change: Change::Fault(Fault::Link { port, up }),
                    ..
                } if self.fail_over => self.on_line(port, up)?,
                Event::Deliver { .. }
                | Event::Lost { .. }
                | Event::Busy { .. }
                | Event::State { .. } => {}
            }
        }
        if self.full && self.pool.used_bytes() <= FRAMES_BYTES_MAX / 2 {
            self.full = false;
            for index in 0..self.ports.len() {
                self.settle_gate(index)?;
            }
        }
        self.choose_seat(clock_ns);
        if clock_ns - self.realtime_at_ns > OFFSET_EVERY_NS {
            (self.realtime, self.realtime_at_ns) = (clock::realtime_minus_monotonic_ns(), clock_ns);
        }
        Ok(())
    }

    /// Writes a frame to the interface of `to`. Gives when that was done: by this reading of the clock the delivery is
    /// late or not, in the ledger, the capture and the verdict.
    fn deliver(
        &mut self,
        at: Instant,
        id: FrameId,
        to: sonde_link::Port,
        (mark, edit): (sonde_link::Mark, sonde_link::Edit),
    ) -> Result<Instant, SwitchError> {
        let slot = self.pool.slot(id);
        let frame = &mut slot.bytes[..slot.length];
        // An address request that comes back to its sender is a server's answer.
        match slot.resolves {
            Some((from, of)) if from == to => wire::answer(frame, of, &self.addresses),
            _ => {}
        }
        // The other copies keep their bytes: a mark is this one's.
        let edited = wire::edited(frame, edit, to, &self.addresses);
        let bytes = edited.as_deref().unwrap_or(frame);
        let marked = wire::marked(bytes, mark);
        let bytes = marked.as_deref().unwrap_or(bytes);
        let handed = self.ports[usize::from(to.0)].write(bytes);
        let (taken, clamp_ns) = (slot.taken, slot.clamp_ns);
        self.unless_gone(usize::from(to.0), handed)?;
        let written_ns = clock::monotonic_ns();
        let written = Instant::from_nanos(written_ns - self.epoch_ns);
        let late_ns = written.as_nanos().saturating_sub(at.as_nanos()) + clamp_ns;
        let due_ns = at.since(taken).as_nanos();
        let end = self.ends[usize::from(to.0)];
        self.meter.delivered(end, at.as_nanos(), due_ns, late_ns);
        self.capture(to, id, written_ns);
        Ok(written)
    }

    /// A station has room again: what waited here goes first.
    fn on_ready(&mut self, index: usize) -> Result<(), SwitchError> {
        while let Some(id) = self.ports[index].pending.pop_front() {
            let stamp_ns = self.now_ns;
            if !self.offer(index, id, stamp_ns)? {
                break;
            }
        }
        self.settle_gate(index)
    }

    /// A line, or all of them, came up or went down: so does the carrier.
    fn on_line(&mut self, port: Option<sonde_link::Port>, up: bool) -> Result<(), SwitchError> {
        let all = match port {
            Some(port) => usize::from(port.0)..usize::from(port.0) + 1,
            None => 0..self.ports.len(),
        };
        for index in all {
            let set = self.ports[index].set_carrier(up);
            self.unless_gone(index, set)?;
        }
        Ok(())
    }

    fn capture(&mut self, port: sonde_link::Port, id: FrameId, at_ns: u64) {
        if self.files.captures(port) {
            let slot = self.pool.slot(id);
            let realtime_ns = at_ns.saturating_add_signed(self.realtime.offset_ns);
            self.files.capture(realtime_ns, &slot.bytes[..slot.length]);
        }
    }

    fn attachment_losses(&mut self) -> Result<AttachmentLosses, SwitchError> {
        let mut all = AttachmentLosses::default();
        for index in 0..self.ports.len() {
            let counted = self.ports[index].losses();
            let losses = match counted {
                Err(error) => {
                    self.unless_gone(index, Err(error))?;
                    self.ports[index].losses()?
                }
                Ok(losses) => losses,
            };
            all.interface_tx += losses.interface_tx;
            all.interface_rx += losses.interface_rx;
            all.gate += losses.gate;
            all.socket += losses.socket;
            all.handover += losses.handover;
        }
        Ok(all)
    }

    /// How often gates were shut, and put back, since the start.
    fn toggles(&self) -> (u64, u64) {
        let all = self.ports.iter().map(|port| port.gate.toggles());
        all.fold((0, 0), |(shut, rearmed), one| {
            (shut + one.shut, rearmed + one.rearmed)
        })
    }

    /// How often this thread moved, and how long it shared the programs' CPUs.
    fn seat_figures(&self) -> (u64, u64) {
        let now_ns = clock::monotonic_ns();
        let figures = |seat: &seat::Seat| (seat.moves(), seat.shared_ns_at(now_ns));
        self.seat.as_ref().map_or(self.marked.seat, figures)
    }

    fn mark(&mut self) -> Result<(), SwitchError> {
        self.marked = Mark {
            seat: self.seat_figures(),
            at_ns: clock::monotonic_ns(),
            cpu_ns: cpu::thread_cpu_ns(),
            counters: self.net.counters(),
            attachment: self.attachment_losses()?,
            toggles: self.toggles(),
            overloads: self.ports.iter().map(|port| port.overloads).sum(),
        };
        self.meter = Meter::new();
        Ok(())
    }

    fn report(&mut self) -> Result<Report, SwitchError> {
        let attachment = self.attachment_losses()?.since(&self.marked.attachment);
        let (counters, before) = (self.net.counters(), &self.marked.counters);
        let sum = |of: fn(&sonde_link::PortCounters) -> u64| {
            let total = |counters: &Counters| counters.ports.iter().map(of).sum::<u64>();
            total(&counters) - total(before)
        };
        let end_of = |port: sonde_link::Port| self.ends.get(usize::from(port.0));
        let called = |port| match end_of(port) {
            Some(end) => format!("h{}", end.host + 1),
            None => "a bridge or router".into(),
        };
        let now = Instant::from_nanos(clock::monotonic_ns() - self.epoch_ns);
        let share = |share: Ratio| {
            let (numerator, denominator) = share.parts();
            numerator as f64 / denominator as f64
        };
        let flows = counters.flows.iter().filter(|one| one.until.is_none());
        let flows = flows.map(|one| FlowReport {
            from: one.flow.from.map(called),
            to: called(one.flow.to),
            wanted: share(one.flow.rho),
            achieved: share(one.achieved(now)),
            lost: one.lost,
        });
        let flows = flows.collect();
        let lost = counters.lost.iter().filter_map(|(key, count)| {
            let new = count - before.lost.get(key).copied().unwrap_or(0);
            let end = end_of(key.2)?;
            let loss = Loss {
                place: key.0,
                cause: key.1,
                host: end.host + 1,
                interface: end.number,
            };
            (new > 0).then_some((loss, new))
        });
        let since_epoch_ns = clock::monotonic_ns() - self.epoch_ns;
        Ok(Report {
            epoch_unix_ns: clock::realtime_ns() - since_epoch_ns,
            epoch_ns: self.epoch_ns,
            span_ns: clock::monotonic_ns() - self.marked.at_ns,
            taken: sum(|port| port.taken),
            blocked: sum(|port| port.blocked),
            lost: lost.collect(),
            attachment,
            gate_shut: self.toggles().0 - self.marked.toggles.0,
            gate_rearmed: self.toggles().1 - self.marked.toggles.1,
            overloads: self.ports.iter().map(|port| port.overloads).sum::<u64>()
                - self.marked.overloads,
            cpu_ns: cpu::thread_cpu_ns() - self.marked.cpu_ns,
            cpu_plan: self.cpu_plan.clone(),
            cpu_moves: self.seat_figures().0 - self.marked.seat.0,
            cpu_shared_ns: self.seat_figures().1 - self.marked.seat.1,
            circuit_setups: counters.circuit_setups - before.circuit_setups,
            flows,
            load_underway: counters.flows.iter().map(FlowCounters::underway).sum(),
            ..self.meter.report()
        })
    }

    /// Ends the files; what could not be written is the error.
    fn end_files(&mut self) -> Result<(), SwitchError> {
        if self.files.has_ledger() {
            // What is due until now is told first, so that the ledger is whole.
            self.give_out()?;
        }
        let at = Instant::from_nanos(self.now_ns - self.epoch_ns);
        match &self.files.end(at)[..] {
            [] => Ok(()),
            broken => Err(SwitchError::Unwritten(broken.join("; "))),
        }
    }
}

/// The lab's own mounts and network namespace.
fn house(config: &Config, guarded: bool) -> Result<(), SwitchError> {
    namespace::unshare(Namespaces::of(&[
        Space::Net,
        Space::Mount,
        Space::Uts,
        Space::Ipc,
    ]))?;
    mount::make_private(Path::new("/"))?;
    // Held open, for the program may lie where the next mount hides it; by its name, for the link in /proc leads into the
    // mounts that were left, from where nothing can be bound (EINVAL).
    let program = std::fs::read_link("/proc/self/exe")
        .and_then(File::open)
        .map_err(file("open this program"))?;
    mount::proc(Path::new("/proc"))?;
    mount::tmpfs(Path::new("/run"), 0o755, 64 << 20)?;
    let bin = Path::new(exec::FOLDER).join("bin");
    std::fs::create_dir_all(&bin).map_err(file("make the lab's folder"))?;
    let link = bin.join("sonde");
    File::create(&link).map_err(file("make a place for this program"))?;
    mount::bind(
        Path::new(&format!("/proc/self/fd/{}", process::number(&program))),
        &link,
    )?;
    libraries::share(config.hosts())
        .map_err(file("write the settings of message-passing libraries"))?;
    if guarded {
        furnish::guard_machine(&config.tun)?;
    }
    interface::quiet()?;
    Ok(())
}

/// Starts all inits, then waits for each.
fn start_hosts(
    config: &Config,
    (subnets, addresses): (&Subnets, &Addresses),
    guarded: bool,
) -> Result<Vec<HostProcess>, SwitchError> {
    let own = namespace::open(0, Space::Pid)?;
    let mut hosts = Vec::new();
    let names = config.site.names();
    let mut tables = furnish::Tables::new(&config.site, subnets, addresses);
    for number in 1..=config.hosts() {
        let (mine, theirs) = message::pair()?;
        namespace::unshare(Namespaces::of(&[Space::Pid]))?;
        let child =
            cradle::start(cradle::HOST, theirs).map_err(file("start the init of a host"))?;
        namespace::setns(&own, Space::Pid)?;
        let host = HostConfig {
            number,
            name: names[usize::from(number) - 1].to_owned(),
            hosts: config.hosts(),
            table: tables.of(number - 1),
            keep: config.keep.clone(),
            user: config.user,
            share: config.share,
            guarded,
            cpus: config.cpus.hosts.clone(),
        };
        say(&mine, &HostRequest::Start(host), &[])?;
        hosts.push(HostProcess {
            child,
            socket: mine,
            is_gone: false,
            end: None,
        });
    }
    for host in await_all(&hosts, HostAnswer::Unshared)? {
        ids::write_same(host.child.id(), u32::MAX)?;
        say(&host.socket, &HostRequest::Mapped, &[])?;
    }
    await_all(&hosts, HostAnswer::Ready)?;
    Ok(hosts)
}

/// Waits until each host has given this answer.
fn await_all(hosts: &[HostProcess], wanted: HostAnswer) -> Result<&[HostProcess], SwitchError> {
    for (number, host) in (1..).zip(hosts) {
        let problem = match hear::<HostAnswer>(&host.socket) {
            Ok((answer, _)) if answer == wanted => continue,
            Ok((HostAnswer::Failed(problem), _)) => problem,
            Ok(_) | Err(_) => "its init ended".into(),
        };
        return Err(SwitchError::Host { number, problem });
    }
    Ok(hosts)
}
