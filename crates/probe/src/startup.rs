//! Cold: what the first message on a fresh socket costs, the measuring side.
//!
//! Model:   forget the neighbours if asked; connect (TCP); first message there and back; second message there and back;
//!          only then the hello. `cold_total` is from before the socket exists to the first answer, so connect + first
//!          is at most that. A start-up whose datagram was lost is counted and is no sample.
//! Checked: `tests/conversation.rs`, `startup_*`.

use sonde_channel::{Channel, Path, Settings, Tcp, Udp, payload};
use sonde_sys::clock::monotonic_ns;
use sonde_sys::netlink::Netlink;

use crate::{Error, Figures, Measure, Measured, Result, Startup, admission};

/// Forgets the neighbours of an interface.
pub(crate) fn flush(interface: Option<&str>) -> Result<()> {
    if let Some(name) = interface {
        let mut netlink = Netlink::open()?;
        let index = netlink.index(name)?;
        netlink.flush_neighbours(index)?;
    }
    Ok(())
}

/// Buffers for one start-up, prepared before it.
struct Messages {
    ping: Vec<u8>,
    pong: Vec<u8>,
}

impl Messages {
    /// One message there and back: when it was over, and whether it had to be sent again.
    fn exchange(&mut self, channel: &mut impl Channel, sequence: u32) -> Result<(u64, bool)> {
        payload::stamp(&mut self.ping, sequence);
        let resent = channel.exchange(&self.ping, &mut self.pong)?;
        let at_ns = monotonic_ns();
        Ok((at_ns, resent > 0))
    }

    fn check(&self, measure: &Measure, sequence: u32) -> Result<()> {
        let checked = match measure.terms.verify {
            true => payload::verify(&self.pong, sequence),
            false => payload::check(&self.pong, sequence),
        };
        checked.map_err(|mismatch| {
            sonde_channel::Error::Payload {
                peer: measure.peer,
                mismatch,
            }
            .into()
        })
    }
}

pub(crate) fn measure(measure: &Measure) -> Result<Measured> {
    let terms = &measure.terms;
    let ping = payload::message(terms.size());
    let mut messages = Messages {
        pong: vec![0; ping.len()],
        ping,
    };
    let mut startup = Startup::default();
    let end_ns = monotonic_ns() + terms.budget_ns;
    let mut settings = None;
    for sample in 1..=terms.samples {
        flush(measure.flush_neighbour.as_deref())?;
        let last = |now_ns: u64| sample == terms.samples || now_ns >= end_ns;
        let ended;
        (settings, ended) = match terms.path {
            Path::Tcp => tcp(measure, &mut messages, &mut startup, last)?,
            Path::Udp => udp(measure, &mut messages, &mut startup, last)?,
        };
        if ended {
            break;
        }
    }
    if startup.first_ns.is_empty() {
        return Err(Error::Integrity(format!(
            "all {} start-ups lost a datagram",
            startup.lost
        )));
    }
    let settings = settings.ok_or(Error::Abandoned)?;
    Ok(Measured {
        settings,
        figures: Figures::Startup(startup),
    })
}

fn tcp(
    measure: &Measure,
    messages: &mut Messages,
    startup: &mut Startup,
    last: impl Fn(u64) -> bool,
) -> Result<(Option<Settings>, bool)> {
    let terms = &measure.terms;
    let options = terms.options();
    payload::stamp(&mut messages.ping, 0);
    let begin_ns = monotonic_ns();
    let mut channel = Tcp::connect(measure.peer, options)?;
    let connected_ns = monotonic_ns();
    let (first_ns, _) = messages.exchange(&mut channel, 0)?;
    messages.check(measure, 0)?;
    let again_ns = monotonic_ns();
    let (second_ns, _) = messages.exchange(&mut channel, 1)?;
    messages.check(measure, 1)?;
    startup.connect_ns.push(connected_ns - begin_ns);
    startup.first_ns.push(first_ns - connected_ns);
    startup.cold_total_ns.push(first_ns - begin_ns);
    startup.second_ns.push(second_ns - again_ns);
    let last = last(second_ns);
    admission::hello_tcp(&mut channel, &measure.token, terms, last)?;
    Ok((Some(channel.settings()?), last))
}

fn udp(
    measure: &Measure,
    messages: &mut Messages,
    startup: &mut Startup,
    last: impl Fn(u64) -> bool,
) -> Result<(Option<Settings>, bool)> {
    let terms = &measure.terms;
    let options = terms.options();
    let begin_ns = monotonic_ns();
    let mut channel = Udp::connect(measure.peer, options)?;
    let open_ns = monotonic_ns();
    let (first_ns, lost) = messages.exchange(&mut channel, 0)?;
    messages.check(measure, 0)?;
    let again_ns = monotonic_ns();
    let (second_ns, lost_again) = messages.exchange(&mut channel, 1)?;
    messages.check(measure, 1)?;
    if lost || lost_again {
        startup.lost += 1;
    } else {
        startup.first_ns.push(first_ns - open_ns);
        startup.cold_total_ns.push(first_ns - begin_ns);
        startup.second_ns.push(second_ns - again_ns);
    }
    let last = last(second_ns);
    admission::hello_udp(&mut channel, &measure.token, terms, last)?;
    Ok((Some(channel.settings()?), last))
}
