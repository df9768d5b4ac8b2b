//! Which hosts of a site do not reach each other while what its files say breaks: for how long, and why.
//!
//! Model:   after each change of the schedule, and once more 10 ms to 100 s later until the next, each host sends a frame of 64 bytes to each other
//!          one, a millisecond apart. What is not there ten seconds after the last is apart, until the next look. So what ends by itself, as a
//!          circuit that is set up anew, is known to the next of these looks; the end of a restart is known. Random losses, collisions and
//!          full queues are no outage; loads are left out.
//! Units:   the times of pairs are means over all ordered pairs of hosts.
//! Checked: `downtime_is_the_schedule_s`, `a_part_of_the_pairs_is_a_part_of_the_time`, `circuits_come_back_by_hand_or_by_themselves`.

use sonde_link::{
    Admission, Cause, Command, Event, Fault, FaultSpec, Frame, FrameId, Mark, Network, Port,
    SiteSpec, SpecError, commands, join,
};
use sonde_units::{Bytes, Instant, Span};
use std::collections::{BTreeMap, BTreeSet};

/// When it is looked again after a change.
const AGAIN: [Span; 5] = [
    Span::millis(10),
    Span::millis(100),
    Span::secs(1),
    Span::secs(10),
    Span::secs(100),
];
const APART: Span = Span::millis(1);
const PATIENCE: Span = Span::secs(10);
const LEN: Bytes = Bytes(64);

/// Why pairs of hosts were apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outage {
    /// How often that began.
    pub times: u64,
    /// How long each pair was, in the mean.
    pub mean: Span,
    /// How long any pair was.
    pub any: Span,
}

/// The down-time of a site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Downtime {
    /// Ordered pairs of hosts.
    pub pairs: u64,
    /// All of it.
    pub all: Outage,
    /// The longest time for which any pair was apart.
    pub longest: Span,
    /// By cause. Of hosts that stand still that is as of hosts that are gone.
    pub by_cause: BTreeMap<Cause, Outage>,
}

/// The down-time from the start of a site until then.
///
/// # Errors
/// [`SpecError`] where a network or its schedule cannot be.
pub fn downtime(site: &SiteSpec, lasts: Span) -> Result<Downtime, SpecError> {
    let end = Instant::START + lasts;
    let mut changes = Vec::new();
    for one in &site.segment {
        changes.push(commands(&one.network.fault)?);
    }
    let mut looks = BTreeSet::from([Instant::START]);
    let times: BTreeSet<Instant> = changes.iter().flatten().map(|(at, _)| *at).collect();
    for (at, command) in changes.iter().flatten() {
        let own = match command {
            Command::Fault(Fault::Restart { down }) => Some(at.saturating_add(*down)),
            _ => None,
        };
        let next = times.range(*at..).find(|next| *next > at);
        let again = AGAIN.iter().map(|after| at.saturating_add(*after));
        let again = again.filter(|again| next.is_none_or(|next| again < next));
        looks.extend([Some(*at), own].into_iter().flatten().chain(again));
    }
    let looks: Vec<Instant> = looks.into_iter().filter(|at| *at < end).collect();
    let pairs = pairs(site);
    let mut found = Downtime {
        pairs: pairs.len() as u64,
        ..Downtime::default()
    };
    let mut before: BTreeMap<Cause, u64> = BTreeMap::new();
    let mut lasted = Span::ZERO;
    for (number, at) in looks.iter().enumerate() {
        let until = looks.get(number + 1).copied().unwrap_or(end);
        let span = until.since(*at);
        let apart = apart(site, &changes, *at, &pairs)?;
        let sum: u64 = apart.values().sum();
        for (cause, count) in &apart {
            let own = found.by_cause.entry(*cause).or_default();
            own.add(span, (*count, found.pairs), before.contains_key(cause));
        }
        if sum > 0 {
            found.all.add(span, (sum, found.pairs), !before.is_empty());
            lasted += span;
            found.longest = found.longest.max(lasted);
        } else {
            lasted = Span::ZERO;
        }
        before = apart;
    }
    Ok(found)
}

impl Outage {
    /// So long more, of so many pairs of all.
    fn add(&mut self, span: Span, (count, all): (u64, u64), goes_on: bool) {
        self.times += u64::from(!goes_on);
        self.any += span;
        let share = u128::from(span.as_picos()) * u128::from(count) / u128::from(all.max(1));
        self.mean += Span::picos(share as u64);
    }
}

/// The ports of each ordered pair of hosts, by the nearest way.
fn pairs(site: &SiteSpec) -> Vec<(Port, Port)> {
    let Ok(subnets) = site.subnets() else {
        return Vec::new();
    };
    let hosts = 0..site.count();
    let all = hosts
        .clone()
        .flat_map(|from| hosts.clone().map(move |to| (from, to)));
    let apart = all.filter(|(from, to)| from != to);
    apart
        .filter_map(|(from, to)| subnets.between(from, to))
        .collect()
}

/// How many of these pairs do not reach each other then, by cause.
fn apart(
    site: &SiteSpec,
    changes: &[Vec<(Instant, Command)>],
    at: Instant,
    pairs: &[(Port, Port)],
) -> Result<BTreeMap<Cause, u64>, SpecError> {
    // What happened by then, and nothing after it.
    let mut until = site.clone();
    for (one, changes) in until.segment.iter_mut().zip(changes) {
        let so_far = changes.iter().filter(|(begin, _)| *begin <= at);
        let fault = |(begin, command): &(Instant, Command)| FaultSpec {
            at: begin.since(Instant::START),
            command: *command,
            lasts: None,
            every: None,
            until: None,
        };
        one.network.fault = so_far.map(fault).collect();
        one.network.load.clear();
    }
    let mut network = join(&until, 0, Vec::new())?;
    // A host that stands still tells nothing.
    let mut states = vec![Some(Cause::HostDown); pairs.len()];
    let mut hear = |network: &mut Box<dyn Network + Send>, now: Instant| {
        while let Some(event) = network.poll(now) {
            match event {
                Event::Deliver {
                    id, mark: Mark::Ok, ..
                } => states[id.0 as usize] = None,
                Event::Lost { id, cause, .. } => {
                    let is_outage = !matches!(
                        cause,
                        Cause::Random | Cause::Collisions | Cause::Overflow | Cause::Discarded
                    );
                    states[id.0 as usize] = Some(cause).filter(|_| is_outage);
                }
                _ => {}
            }
        }
    };
    let mut now = at;
    for (id, (from, to)) in (0..).zip(pairs) {
        hear(&mut network, now);
        let frame = Frame::datagram(FrameId(id), *from, *to, LEN);
        let admission = network.offer(now, frame);
        debug_assert!(matches!(admission, Admission::Taken | Admission::Blocked));
        now = now + APART;
    }
    hear(&mut network, now + PATIENCE);
    let mut counts = BTreeMap::new();
    for cause in states.into_iter().flatten() {
        *counts.entry(cause).or_default() += 1;
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sonde_link::resolve;

    const HOUR: Span = Span::secs(3_600);
    const DAY: Span = Span::secs(86_400);

    /// A network of four hosts with a schedule.
    fn site(network: &str, schedule: &[(Span, &str)]) -> SiteSpec {
        let spec = resolve(network, &|_| unreachable!()).unwrap();
        let mut site = SiteSpec::single(spec, 4);
        for (at, command) in schedule {
            site.schedule(*at, command.parse().unwrap()).unwrap();
        }
        site
    }

    fn minutes(span: Span) -> f64 {
        span.as_picos() as f64 / 60e12
    }

    #[test]
    fn downtime_is_the_schedule_s() {
        let nothing = downtime(&site("ethernet-100", &[]), DAY).unwrap();
        assert_eq!((nothing.pairs, nothing.all), (12, Outage::default()));
        let broken = [(HOUR, "restart 90s"), (HOUR * 2, "restart 30s")];
        let found = downtime(&site("ethernet-100", &broken), DAY).unwrap();
        let due = Outage {
            times: 2,
            mean: Span::secs(120),
            any: Span::secs(120),
        };
        assert_eq!((found.all, found.longest), (due, Span::secs(90)));
        assert_eq!(found.by_cause, BTreeMap::from([(Cause::Restart, due)]));
        // What begins within the time counts as far as that.
        let found = downtime(&site("ethernet-100", &broken), HOUR + Span::secs(30)).unwrap();
        assert_eq!(found.all.any, Span::secs(30));
    }

    #[test]
    fn a_part_of_the_pairs_is_a_part_of_the_time() {
        // One host of four is in half of the pairs: its line for an hour, itself for two, its pause for one.
        let schedule = [
            (HOUR, "link h2 down"),
            (HOUR * 2, "link h2 up"),
            (HOUR * 4, "host h3 down"),
            (HOUR * 6, "host h3 up"),
            (HOUR * 8, "pause h4 on"),
            (HOUR * 9, "pause h4 off"),
            (HOUR * 12, "cut h1 h2 on"),
            (HOUR * 13, "cut h1 h2 off"),
            (HOUR * 14, "loss all 30%"),
        ];
        for network in ["ethernet-100", "ethernet-10", "fddi"] {
            let found = downtime(&site(network, &schedule), DAY).unwrap();
            let of = |cause| found.by_cause[&cause];
            assert_eq!(of(Cause::LinkDown).any, HOUR, "{network}");
            assert!((minutes(of(Cause::LinkDown).mean) - 30.0).abs() < 0.01);
            assert_eq!(of(Cause::HostDown).any, HOUR * 3, "{network}");
            assert_eq!(of(Cause::HostDown).times, 2, "{network}");
            // Two of twelve pairs.
            assert!((minutes(of(Cause::Parted).mean) - 10.0).abs() < 0.01);
            assert_eq!(found.by_cause.len(), 3, "{network}: {found:?}");
            assert_eq!(found.all.times, 4, "{network}");
            assert_eq!(found.longest, HOUR * 2, "{network}");
        }
    }

    #[test]
    fn circuits_come_back_by_hand_or_by_themselves() {
        // The manager clears all circuits when it comes back, as in Sandia's trial.
        let schedule = [(HOUR, "manager down"), (HOUR * 2, "manager up")];
        let by_hand = downtime(&site("atm-oc3c", &schedule), HOUR * 3).unwrap();
        let of = by_hand.by_cause[&Cause::NoCircuit];
        assert_eq!((of.times, of.any), (1, HOUR), "{by_hand:?}");
        // Ethernet beside it has no manager, and as in the trial no outage.
        let ethernet = downtime(&site("ethernet-10", &[]), HOUR * 3).unwrap();
        assert_eq!(ethernet.all, Outage::default());
        // Switched circuits are set up anew by who needs them.
        let schedule = [(HOUR, "restart 10s")];
        let switched = downtime(&site("atm-oc3c:vc=svc", &schedule), HOUR * 3).unwrap();
        assert!(switched.all.any <= Span::secs(10), "{switched:?}");
    }
}
