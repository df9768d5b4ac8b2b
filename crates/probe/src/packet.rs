//! Conversations by whole frames: the paths `packet` and `xdp`, both sides.
//!
//! Model:   a TCP connection beside the frames carries the hello, the interfaces' addresses and the end, so that no frame of
//!          the conversation steers it and no neighbour has to be asked for; it is silent meanwhile. Each size is a visit
//!          with a connection and packet sockets of its own. Frames that are lost, late, again or of others are treated as
//!          datagrams are; what is refused at either end stands in the settings. The serving side looks for the end
//!          whenever no frame came for [`LOOK`].
//! Checked: `tests/conversation.rs`, `packet_*`; `tests/lab_paths.rs` of the command.

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use sonde_channel::payload;
use sonde_channel::{
    Acceptor, Aligned, Came, Channel, Losses, Mark, Options, Packet, Place, Role, Tcp, Woken,
    readable,
};
use sonde_measure::{Knobs, Method, Procedure, Quantity, Sampling, Side, Spec, Transfer, Wait};
use sonde_sys::clock::monotonic_ns;

use crate::admission::{self, Reply, Say, Visit};
use crate::meter::{Meter, Reading};
use crate::numbers::ArrivedNumbers;
use crate::serve::{Admission, is_numbered};
use crate::stream::{Pipe, Stream};
use crate::talk::{Measure, Measured, Sent, Serve, Served, SizeMeasured, SizeServed, options};
use crate::trips::{RESEND_AFTER_NS_MIN, RESEND_ROUND_TRIPS, Trips, share};
use crate::watch::Watch;
use crate::{Error, Result};

/// How often the serving side looks for the end while no frame comes.
const LOOK: Duration = Duration::from_millis(20);
/// What may still be under way when the end was heard.
const UNDER_WAY: Duration = Duration::from_millis(100);
/// A number so far above all before is none of a stream's.
const AHEAD_MAX: u64 = 1 << 22;

/// Where an end's frames enter: from either side, after the hello.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Here {
    mac: [u8; 6],
    mtu_bytes: usize,
}

/// The connection beside the frames: as plain as can be, whatever the frames are to be.
pub(crate) fn beside(spec: &Spec) -> Options {
    Options {
        wait: Wait::Block,
        method: Method::Plain,
        knobs: Knobs::default(),
        ..options(spec)
    }
}

/// The same for the measuring side, which sends from an address of its own where it has one.
pub(crate) fn beside_of(measure: &Measure) -> Options {
    Options {
        source: measure.source,
        ..beside(&measure.spec)
    }
}

/// What tells this visit's frames from all others. Who has heard them knows the mark of this visit and of no other.
fn mark(token: &str, visit: Visit) -> Mark {
    let mut hash = Sha256::new();
    hash.update(token.as_bytes());
    hash.update((visit.size as u64).to_le_bytes());
    let digest: [u8; 32] = hash.finalize().into();
    let (tag, _) = digest
        .split_first_chunk()
        .expect("32 bytes are more than 8");
    Mark {
        tag: u64::from_le_bytes(*tag),
        conversation: visit.size as u32,
    }
}

/// Opens this end's frames and tells the peer where they enter.
pub(crate) fn open(
    control: &mut Tcp,
    token: &str,
    spec: &Spec,
    visit: Visit,
    role: Role,
) -> Result<Packet> {
    let peer = control.peer();
    let place = Place::towards(peer.ip(), spec.path)?;
    let here = Here {
        mac: place.mac,
        mtu_bytes: place.mtu_bytes,
    };
    let size = spec.sizes_bytes.get(visit.size).copied().unwrap_or(0);
    // The serving side's frames are open before it says so, the measuring side's before it sends.
    let opened = |there: [u8; 6]| {
        let mark = mark(token, visit);
        Packet::open(place.clone(), peer, there, role, mark, options(spec))
    };
    let (channel, there) = match role {
        Role::Serving => {
            let there: Here = admission::recv_frame(control)?;
            let channel = opened(there.mac)?;
            admission::send_frame(control, &here)?;
            (channel, there)
        }
        Role::Measuring => {
            admission::send_frame(control, &here)?;
            let there: Here = admission::recv_frame(control)?;
            (opened(there.mac)?, there)
        }
    };
    let least = place.message_bytes_max().min(
        there
            .mtu_bytes
            .saturating_sub(sonde_channel::PACKET_HEADER_BYTES),
    );
    if size > least as u64 {
        return Err(Error::Unmeasurable {
            what: format!(
                "a message of {size} bytes does not fit in a frame, which carries {least} bytes here"
            ),
            remedy: "ask for smaller messages, or use udp, which fragments",
        });
    }
    Ok(channel)
}

/// What a packet socket is, and how it handed frames over.
fn tell(channel: &Packet, side: &mut Side) -> Result<()> {
    side.socket = channel.settings()?;
    side.transfer = Transfer {
        interface: Some(channel.place().name.clone().into()),
        frames_refused: Some(channel.refused()),
        frames_without_room: channel.drops()?,
        ..channel.transfer()
    };
    Ok(())
}

fn connect(measure: &Measure, visit: Visit) -> Result<(Tcp, Packet)> {
    let spec = &measure.spec;
    let number = admission::number(spec, visit);
    let mut control: Tcp = admission::connect(measure, number, beside_of(measure))?;
    admission::hello_stream(&mut control, measure, visit)?;
    let channel = open(&mut control, &measure.token, spec, visit, Role::Measuring)?;
    Ok((control, channel))
}

/// Says that all is sent, and waits until the peer has heard it.
fn end(control: &mut Tcp, messages: u64) -> Result<()> {
    admission::send_frame(control, &Say::End { messages })?;
    loop {
        match admission::recv_frame(control)? {
            Reply::Ended {} => return Ok(()),
            // Said while the stream still went.
            Reply::Rated {} => {}
            _ => {
                return Err(Error::Integrity(
                    "the peer answered an end with something else".into(),
                ));
            }
        }
    }
}

/// Round trips, the measuring side.
pub(crate) fn trips(
    measure: &Measure,
    sampling: Sampling,
    visit: Visit,
    measured: &mut Measured,
) -> Result<SizeMeasured> {
    let spec = &measure.spec;
    let (mut control, mut channel) = connect(measure, visit)?;
    let size = spec.sizes_bytes[visit.size];
    let mut trips = Trips::new(measure, sampling, size as usize)?;
    let watch = Watch::begin()?;
    let mut warm = Losses::default();
    let times = trips.all(&mut channel, |channel: &mut Packet, slowest_ns| {
        warm = channel.losses();
        let after_ns = (RESEND_ROUND_TRIPS * slowest_ns).max(RESEND_AFTER_NS_MIN);
        Ok(channel.set_within(Duration::from_nanos(after_ns))?)
    })?;
    watch.end(&mut measured.interference, None)?;
    end(&mut control, times.count)?;
    trips.tell(&mut measured.evidence);
    tell(&channel, &mut measured.evidence.src)?;
    let losses = channel.losses();
    let late = losses.late - warm.late;
    let lost = (losses.resent - warm.resent).saturating_sub(late);
    let sent = times.warm.count() + losses.resent - warm.resent;
    let mut size = times.measured(size, &mut measured.evidence);
    size.measurements
        .push(share(Quantity::LostShare, lost, sent));
    Ok(size)
}

/// The frames of a stream, and where its receiver says that its window is over.
pub(crate) struct Blast {
    control: Tcp,
    channel: Packet,
}

impl Pipe for Blast {
    fn account(&self) -> Result<Option<sonde_sys::socket::TcpInfo>> {
        Ok(None)
    }

    fn is_rated(&mut self) -> Result<bool> {
        // The first byte of the frame that says so; the rest of it is read by `end`.
        Ok(readable(&[self.control.as_fd()], Duration::ZERO)
            .is_ok_and(|woken| woken == Woken::Readable(0)))
    }
}

/// A stream, the sending side.
pub(crate) fn blast(measure: &Measure, visit: Visit, stream: &mut Stream<'_>) -> Result<Sent> {
    let (control, channel) = connect(measure, visit)?;
    let mut blast = Blast { control, channel };
    let sent = stream.numbered(&mut blast, |blast, message| {
        Ok(blast.channel.send(message)?)
    })?;
    end(&mut blast.control, sent.messages)?;
    tell(&blast.channel, stream.side)?;
    Ok(sent)
}

/// The serving side.
pub(crate) fn serve(mut acceptor: Acceptor, serve: &Serve, stop: BorrowedFd<'_>) -> Result<Served> {
    let mut admission = Admission::new(serve, acceptor.local());
    let mut served = Served::default();
    loop {
        let mut control = admission.accept(&mut acceptor, served.sizes.len(), stop)?;
        acceptor.watch()?;
        let Some((visit, size)) = admission.hello(&mut control)? else {
            continue;
        };
        let spec = &serve.spec;
        let channel = open(&mut control, &serve.token, spec, visit, Role::Serving)?;
        let watch = Watch::begin()?;
        let mut visited = Visited {
            serve,
            control,
            channel,
            message: Aligned::new(vec![0; size], &spec.knobs)?,
            answer: Aligned::new(payload::message(size), &spec.knobs)?,
            silent_since: Instant::now(),
        };
        let one = match spec.procedure {
            Procedure::Stream { window_ns } => visited.count(window_ns)?,
            _ => visited.echo()?,
        };
        watch.end(&mut served.interference, None)?;
        tell(&visited.channel, &mut served.evidence.dst)?;
        admission::send_frame(&mut visited.control, &Reply::Ended {})?;
        served.refused = admission.refused_at(&mut acceptor);
        served.sizes.push(one);
        if visit.last {
            return Ok(served);
        }
        admission.since = Instant::now();
    }
}

/// A peer that was admitted.
struct Visited<'a> {
    serve: &'a Serve,
    control: Tcp,
    channel: Packet,
    message: Aligned,
    /// Where buffers are cold: what is answered from.
    answer: Aligned,
    silent_since: Instant,
}

impl Visited<'_> {
    fn peer(&self) -> SocketAddr {
        self.control.peer()
    }

    /// After silence: the end, if it was said.
    #[cold]
    fn ended(&mut self) -> Result<Option<u64>> {
        let control = [self.control.as_fd()];
        let said = readable(&control, Duration::ZERO);
        if said.is_ok_and(|woken| woken == Woken::Silence) {
            let waited = self.silent_since.elapsed();
            if waited < self.serve.spec.timeout() {
                return Ok(None);
            }
            return Err(sonde_channel::Error::Timeout {
                peer: self.peer(),
                awaited: format!("a frame of {} bytes, or the end", self.message.len()),
                waited,
            }
            .into());
        }
        match admission::recv_frame(&mut self.control)? {
            Say::End { messages } => Ok(Some(messages)),
            Say::Hello { .. } => Err(Error::Integrity("the peer sent two hellos".into())),
        }
    }

    /// Answers until the end; a frame that was there before is refused.
    fn echo(&mut self) -> Result<SizeServed> {
        self.channel.set_within(LOOK)?;
        let answer = self.serve.spec.answer_bytes(self.message.len());
        let mut one = SizeServed::default();
        let (mut heard, mut number) = (false, 0_u32);
        loop {
            match self.channel.recv_fresh(&mut self.message)? {
                Came::Message { sequence } => {
                    if self.answer.is_cold() && is_numbered(&self.message, number) {
                        self.channel.send_as(sequence, &self.answer[..answer])?;
                        self.answer.used(number);
                        number = number.wrapping_add(1);
                    } else {
                        self.channel.send_as(sequence, &self.message[..answer])?;
                    }
                    self.message.taken();
                    heard = true;
                    one.messages += 1;
                    one.bytes += self.message.len() as u64;
                }
                Came::Silence => {
                    if std::mem::take(&mut heard) {
                        self.silent_since = Instant::now();
                    }
                    if self.ended()?.is_some() {
                        return Ok(one);
                    }
                }
            }
        }
    }

    /// Receives, rates and counts a blast of numbered frames.
    fn count(&mut self, window_ns: u64) -> Result<SizeServed> {
        self.channel.set_within(LOOK)?;
        let mut meter = Meter::new(window_ns);
        let mut seen = ArrivedNumbers::default();
        let mut highest = 0;
        let (mut told, mut heard, mut foreign) = (false, false, 0u64);
        let mut sent = None;
        loop {
            match self.channel.recv_message(&mut self.message)? {
                Came::Message { sequence } => {
                    let now_ns = monotonic_ns();
                    // Transmissions are numbered from one, messages from zero.
                    let number = sequence.wrapping_sub(1) as u32;
                    let wrong = sequence == 0
                        || sequence > highest + AHEAD_MAX
                        || payload::check(&self.message, number).is_err();
                    if wrong {
                        foreign += 1;
                        continue;
                    }
                    if self.serve.spec.verify {
                        let peer = self.peer();
                        payload::verify(&self.message, number)
                            .map_err(|mismatch| sonde_channel::Error::Payload { peer, mismatch })?;
                    }
                    self.message.taken();
                    heard = true;
                    highest = highest.max(sequence);
                    meter.on_arrival(now_ns, self.message.len() as u64, Reading::of_thread);
                    seen.on_number(number);
                    if meter.is_over() && !told {
                        told = true;
                        admission::send_frame(&mut self.control, &Reply::Rated {})?;
                    }
                }
                Came::Silence if sent.is_some() => break,
                Came::Silence => {
                    if std::mem::take(&mut heard) {
                        self.silent_since = Instant::now();
                    }
                    sent = self.ended()?;
                    if sent.is_some() {
                        self.channel.set_within(UNDER_WAY)?;
                    }
                }
            }
        }
        let sent = sent.unwrap_or(0);
        if sent < seen.distinct {
            return Err(Error::Integrity(format!(
                "{} frames of {sent} arrived",
                seen.distinct
            )));
        }
        Ok(SizeServed {
            away: None,
            bytes: meter.bytes(),
            messages: seen.distinct,
            lost: Some(sent - seen.distinct),
            reordered: Some(seen.reordered),
            duplicated: Some(seen.duplicated + foreign),
            window: Some(meter.window()?),
            slices: None,
            slots: meter.into_slots(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_visit_has_a_mark_of_its_own() {
        let visit = |size| Visit { size, last: false };
        assert_eq!(mark("a", visit(0)), mark("a", visit(0)));
        assert_ne!(mark("a", visit(0)).tag, mark("a", visit(1)).tag);
        assert_ne!(mark("a", visit(0)).tag, mark("b", visit(0)).tag);
    }
}
