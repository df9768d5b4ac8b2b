//! Many senders answer one receiver at once.
//!
//! Model:   at the same moment each of the senders, at ports 1 and up, begins to send its bytes to port 0, whose output at
//!          the switch all of them share. The rate is all user bytes divided by the time until the last sender's last byte
//!          has arrived: one timeout of one sender is waited for by all.
//! Source:  Phanishayee et al., FAST'08 §2 (synchronised reads; the collapse begins where the first windows overflow the
//!          output buffer, and a timeout bounds what is left). Deviations: one round; connections have seen a round trip; hosts
//!          leave small gaps between segments, as in `streams`.
//! Units:   times from the common start; bits a second of user bytes, rounded down.
//! Checked: `tests/incast.rs`.

use crate::Between;
use crate::idle::{Built, FAR};
use crate::meter::Reason;
use crate::stream::{recoverable, traffic};
use crate::tcp::Sender;
use crate::tcp::traffic::{Outcome, Traffic};
use sonde_link::{NetworkSpec, Place, Port, SiteSpec};
use sonde_units::{Bytes, Span};

/// Where every byte goes.
const RECEIVER: Port = Port(0);
/// No answer is waited for longer.
const TIME_MAX: Span = Span::secs(3_600);

/// What came of an incast.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incast {
    /// All user bytes by the time of the last, in bits a second.
    pub goodput_bps: u64,
    /// When all of each sender's bytes had arrived, from the start.
    pub completion: Vec<Span>,
    /// Timeouts of all senders.
    pub timeouts: u64,
    /// Segments sent again by all senders.
    pub retransmits: u64,
    /// Segments that the network lost.
    pub lost: u64,
}

/// `senders` hosts send `bytes_each` user bytes to one, at once; no byte counts as one.
///
/// # Errors
/// [`Reason`]: why nothing can be expected; [`Reason::Lost`] too where a sender is not done after an hour.
pub fn incast(
    spec: &NetworkSpec,
    senders: u16,
    bytes_each: Bytes,
    sender: &Sender,
) -> Result<Incast, Reason> {
    let flows: Vec<_> = (FAR.0..=senders)
        .map(|port| (Port(port), RECEIVER))
        .collect();
    let traffic = traffic(spec, sender, &flows, Some(bytes_each))?;
    gather(traffic, flows.len(), bytes_each)
}

/// The same on a site: all its other hosts send to `receiver`.
///
/// # Errors
/// As [`incast`].
pub fn incast_at(
    site: &SiteSpec,
    receiver: Port,
    bytes_each: Bytes,
    sender: &Sender,
) -> Result<Incast, Reason> {
    let subnets = site.subnets().map_err(|_| unfinished(None))?;
    let (own, subnet) = (
        subnets.ends.get(usize::from(receiver.0)),
        subnets.of_port(receiver),
    );
    let others = (0..site.count()).filter(|host| own.is_some_and(|own| own.host != *host));
    let way = |host| subnets.interface_to(host, subnet?);
    let paths: Vec<_> = others
        .filter_map(way)
        .map(|from| Between {
            site,
            from,
            to: receiver,
        })
        .collect();
    let first = paths.first().ok_or_else(|| unfinished(None))?;
    let traffic = first.traffic(sender, &paths, Some(bytes_each))?;
    gather(traffic, paths.len(), bytes_each)
}

/// Runs flows of so many bytes to one receiver, from when all begin at once.
fn gather(mut traffic: Traffic<Built>, flows: usize, bytes_each: Bytes) -> Result<Incast, Reason> {
    let start = traffic.now();
    let mut completion: Vec<Option<Span>> = vec![None; flows];
    let (mut open, mut lost, mut last_loss) = (flows, 0, None);
    for flow in 0..flows {
        traffic.begin(flow);
    }
    while open > 0 {
        match traffic.step(start + TIME_MAX) {
            Some(Outcome::Arrived { flow, at, .. }) => {
                if completion[flow].is_none() && traffic.is_complete(flow) {
                    completion[flow] = Some(at.since(start));
                    open -= 1;
                }
            }
            Some(Outcome::Lost {
                segment,
                place,
                cause,
            }) => {
                recoverable(place, cause)?;
                lost += u64::from(segment);
                last_loss = Some((place, cause));
            }
            Some(Outcome::Other) => {}
            None => return Err(unfinished(last_loss)),
        }
    }
    let completion: Vec<_> = completion.into_iter().flatten().collect();
    let last = completion.iter().copied().fold(Span::ZERO, Span::max);
    let bits = u128::from(bytes_each.0.max(1)) * 8 * flows as u128;
    let sum = |of: fn(&crate::tcp::Transmit) -> u64| {
        (0..flows).map(|flow| of(traffic.transmit(flow))).sum()
    };
    Ok(Incast {
        goodput_bps: (bits * 1_000_000_000_000 / u128::from(last.as_picos()).max(1)) as u64,
        timeouts: sum(|transmit| transmit.timeouts()),
        retransmits: sum(|transmit| transmit.resent()),
        completion,
        lost,
    })
}

fn unfinished(last_loss: Option<(Place, sonde_link::Cause)>) -> Reason {
    match last_loss {
        Some((place, cause)) => Reason::Lost { place, cause },
        None => Reason::TooFew {
            from: Span::ZERO,
            until: TIME_MAX,
        },
    }
}
