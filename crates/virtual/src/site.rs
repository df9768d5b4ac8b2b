//! What a path over the segments of a site does when nothing else is on it, or a load of one's own.
//!
//! Model:   the site itself is run between two of its hosts. Load, faults, loss and reordering of its networks are left out. Frames
//!          went both ways before, so that no bridge sends to all and circuits are up. A site of one segment is its network, of which the
//!          functions of this crate tell the same.
//! Checked: `a_path_is_the_sum_of_its_segments`, `a_path_is_cold_warm_and_loaded`, `distance_between_cities_is_paid_once_each_way`.

use crate::Clock;
use crate::blast::{HEADERS, blast};
use crate::idle::{
    self, BEGUN, Built, TimeError, asked, fits, frame, hush, in_train, raise, travel,
};
use crate::loaded::{LoadedError, halves};
use crate::meter::Reason;
use crate::stream::{opening, steady, watched};
use crate::tcp::Sender;
use crate::tcp::traffic::{Flow, Traffic};
use sonde_link::{Flow as Load, NetworkSpec, Port, SiteSpec, SpecError, join};
use sonde_units::{Bytes, Instant, OneWay, RoundTrip, Span};

/// Two ports of hosts of a site.
#[derive(Clone, Copy, Debug)]
pub struct Between<'a> {
    /// The site.
    pub site: &'a SiteSpec,
    /// Who sends.
    pub from: Port,
    /// Who receives.
    pub to: Port,
}

/// A site with nothing on it.
pub(crate) fn quiet(site: &SiteSpec) -> Result<Built, SpecError> {
    joined(site, hush)
}

/// A site with its networks changed.
fn joined(site: &SiteSpec, change: fn(&mut NetworkSpec)) -> Result<Built, SpecError> {
    let mut site = site.clone();
    let networks = site.segment.iter_mut().map(|one| &mut one.network);
    networks.for_each(change);
    join(&site, 0, Vec::new())
}

impl<'a> Between<'a> {
    /// The network, where the site is no more than that.
    fn alone(self) -> Option<&'a NetworkSpec> {
        match &self.site.segment[..] {
            [one] => Some(&one.network),
            _ => None,
        }
    }

    /// The networks on the path, in their order, each with frames no longer than come through as one.
    pub fn networks(self) -> Vec<NetworkSpec> {
        let mtu = self.mtu();
        let all = self.site.networks_between(self.from, self.to);
        let cut = |network: &NetworkSpec| NetworkSpec {
            mtu,
            ..network.clone()
        };
        all.into_iter().map(cut).collect()
    }

    /// The longest frame that comes to the other host as one, in layer-3 bytes; 0 where no way leads there.
    pub fn mtu(self) -> u64 {
        let all = self.site.networks_between(self.from, self.to);
        let all = all.iter().map(|network| network.mtu);
        all.min().unwrap_or(0)
    }

    /// From the offer of a frame of `len` layer-3 bytes to its last bit at the other host.
    ///
    /// # Errors
    /// [`TimeError`], also where `len` is above the path's MTU.
    pub fn one_way(self, len: Bytes) -> Result<OneWay, TimeError> {
        match self.alone() {
            Some(network) => idle::one_way(network, len),
            None => self.turn(len).map(|(there, _)| OneWay(there)),
        }
    }

    /// The same for the last bit of the last of several frames, as [`train`](crate::train) has it.
    ///
    /// # Errors
    /// [`TimeError`], also where a frame is above the path's MTU or there is none.
    pub fn train(self, frames: &[Bytes]) -> Result<OneWay, TimeError> {
        if let Some(network) = self.alone() {
            return idle::train(network, frames);
        }
        let mtu = self.mtu();
        frames.iter().try_for_each(|len| fits(mtu, *len))?;
        let len = frames.first().copied().unwrap_or_default();
        in_train(|| self.warm(len), (self.from, self.to), frames)
    }

    /// The same for the first frame of all: bridges send it to all segments, and it waits for switched circuits.
    ///
    /// # Errors
    /// [`TimeError`], also where `len` is above the path's MTU.
    pub fn first_one_way(self, len: Bytes) -> Result<OneWay, TimeError> {
        if let Some(network) = self.alone() {
            return idle::first_one_way(network, len);
        }
        fits(self.mtu(), len)?;
        let mut clock: Clock<Built> = Clock::new(quiet(self.site)?);
        let begin = clock.now();
        let end = travel(&mut clock, frame(0, self.from, self.to, len), self.to)?;
        Ok(OneWay(end.since(begin)))
    }

    /// From the question for the other's link address to the answer; none is asked for behind a router, whose address is known.
    ///
    /// # Errors
    /// [`TimeError`].
    pub fn neighbour(self) -> Result<RoundTrip, TimeError> {
        if let Some(network) = self.alone() {
            return idle::neighbour(network);
        }
        let subnets = self.site.subnets().ok();
        let [from, to] = [self.from, self.to]
            .map(|port| subnets.as_ref().and_then(|subnets| subnets.of_port(port)));
        if from != to {
            return Ok(RoundTrip(Span::ZERO));
        }
        let networks = self.site.networks_between(self.from, self.to);
        let Some(first) = networks.first() else {
            return Ok(RoundTrip(Span::ZERO));
        };
        let clock = self.warm(idle::ADDRESS_PACKET)?;
        asked(clock, (self.from, self.to), first.resolution())
    }

    /// Halves of round trips beside `flows`, which are to hosts' first interfaces, as
    /// [`loaded_round_trips`](crate::loaded_round_trips) has it.
    ///
    /// # Errors
    /// [`LoadedError`]: the frame does not fit or was lost, or a flow is not for this site.
    pub fn loaded(
        self,
        flows: &[Load],
        len: Bytes,
        count: usize,
        think: Span,
    ) -> Result<Vec<Span>, LoadedError> {
        match self.alone() {
            Some(network) => crate::loaded_round_trips(network, flows, len, count, think),
            None => {
                fits(self.mtu(), len)?;
                let clock = self.warm(len)?;
                halves(clock, (self.from, self.to), flows, len, count, think)
            }
        }
    }

    /// The site when a frame of `len` layer-3 bytes has gone both ways, and the line is idle again.
    fn warm(self, len: Bytes) -> Result<Clock<Built>, TimeError> {
        let Self { from, to, .. } = self;
        let mut clock: Clock<Built> = Clock::new(quiet(self.site)?);
        travel(&mut clock, frame(0, from, to, len), to)?;
        let end = travel(&mut clock, frame(1, to, from, len), from)?;
        clock.run_until(end + Span::millis(1), |_, _| {});
        Ok(clock)
    }

    /// A frame there, and one as long back when it has come.
    fn turn(self, len: Bytes) -> Result<(Span, Span), TimeError> {
        fits(self.mtu(), len)?;
        let Self { from, to, .. } = self;
        let mut clock = self.warm(len)?;
        let begin = clock.now();
        let middle = travel(&mut clock, frame(BEGUN, from, to, len), to)?;
        let end = travel(&mut clock, frame(BEGUN + 1, to, from, len), from)?;
        Ok((middle.since(begin), end.since(begin)))
    }

    /// The rate of user bytes at the receiver when slow start is over, in the second after the first or a later one, in bits a second.
    ///
    /// # Errors
    /// [`Reason`]: why nothing can be expected.
    pub fn tcp(self, sender: &Sender) -> Result<u64, Reason> {
        const SECOND: Span = Span::secs(1);
        if let Some(network) = self.alone() {
            return crate::tcp_expected(network, sender);
        }
        let (mtu, networks) = (Bytes(self.mtu()), self.networks());
        let times = networks.iter().map(|one| one.frame_time(mtu));
        let slowest = times.max().unwrap_or_default();
        let turn = self.turn(mtu).map(|(_, back)| back).unwrap_or_default();
        let warm_up = opening(turn, slowest, mtu, sender).max(SECOND);
        let mut traffic = self.traffic(sender, &[self], None)?;
        let networks: Vec<_> = networks.iter().collect();
        if let Some(rate) = steady(&mut traffic, &networks, warm_up, SECOND)? {
            return Ok(rate);
        }
        let mut traffic = self.traffic(sender, &[self], None)?;
        traffic.begin(0);
        let (rates, _) = watched(&mut traffic, 1, Instant::START + warm_up, SECOND)?;
        Ok(rates.first().copied().unwrap_or(0))
    }

    /// The rate of user bytes at the receiver of datagrams of `payload` bytes, as [`udp_expected`](crate::udp_expected) has it.
    ///
    /// # Errors
    /// [`Reason`]: why nothing can be expected.
    pub fn udp(self, payload: Bytes) -> Result<u64, Reason> {
        if let Some(network) = self.alone() {
            return crate::udp_expected(network, payload);
        }
        let (mtu, networks) = (self.mtu(), self.networks());
        if payload.0.saturating_add(HEADERS) > mtu {
            return Err(Reason::Fragments { payload, mtu });
        }
        if networks.iter().all(|one| one.line.rate.is_none()) {
            return Err(Reason::Boundless);
        }
        let queues = networks.iter().map(|one| one.station.queue.0).sum();
        let clock = Clock::new(joined(self.site, raise)?);
        blast(clock, (self.from, self.to), payload, Bytes(queues))
    }

    /// Flows of `bytes` each, or without end, on paths of this one's site; none has begun.
    pub(crate) fn traffic(
        self,
        sender: &Sender,
        paths: &[Self],
        bytes: Option<Bytes>,
    ) -> Result<Traffic<Built>, Reason> {
        let mtu = Bytes(paths.iter().map(|path| path.mtu()).min().unwrap_or(0));
        let flow = |path: &Self| Flow {
            from: path.from,
            to: path.to,
            bytes,
            rtt: path.turn(mtu).ok().map(|(_, back)| back),
        };
        let flows: Vec<_> = paths.iter().map(flow).collect();
        let mut traffic = Traffic::new(quiet(self.site)?, mtu, sender, &flows)?;
        if let (2.., Some(network)) = (flows.len(), self.site.network_of(self.from)) {
            traffic.make_uneven(network.line, 0);
        }
        Ok(traffic)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{one_way, tcp_expected};
    use sonde_link::{Class, Law, parse_site, resolve};
    use sonde_units::Ratio;

    /// Segments of Fast Ethernet in a row, of a name, joined by nodes of this kind: two hosts each.
    fn row(kind: &str) -> SiteSpec {
        let mut text = "name = \"row\"\nsummary = \"row\"\n".to_owned();
        for n in 0..3 {
            text += &format!(
                "[[segment]]\nname = \"s{n}\"\nnetwork = \"ethernet-100\"\nhosts = [\"x{n}-[1-2]\"]\n"
            );
        }
        for n in 1..3 {
            text += &format!(
                "[[{kind}]]\nname = \"b{n}\"\njoins = [\"s{}\", \"s{n}\"]\nlatency = \"30us\"\n",
                n - 1
            );
        }
        parse_site("row", &text, &|_| unreachable!()).unwrap()
    }

    #[test]
    fn a_path_is_cold_warm_and_loaded() {
        const FULL: Bytes = Bytes(1_500);
        let spec = resolve("ethernet-100", &|_| unreachable!()).unwrap();
        let later = crate::train(&spec, &[FULL; 10]).unwrap().0 - one_way(&spec, FULL).unwrap().0;
        for kind in ["bridge", "router"] {
            let site = row(kind);
            let path = Between {
                site: &site,
                from: Port(0),
                to: Port(5),
            };
            let networks = path.networks();
            assert_eq!((networks.len(), path.mtu()), (3, 1_500), "{kind}");
            // Each frame behind the first is later by its time on a line; without traffic the first of all is no later than others.
            let alone = path.one_way(FULL).unwrap().0;
            assert_eq!(path.train(&[FULL; 10]).unwrap().0, alone + later, "{kind}");
            assert_eq!(path.first_one_way(FULL).unwrap().0, alone, "{kind}");
            // A question goes to all and is answered through bridges; the address of a router is known.
            let asked = match kind {
                "bridge" => path.one_way(Bytes(28)).unwrap().0 * 2,
                _ => Span::ZERO,
            };
            assert_eq!(path.neighbour().unwrap().0, asked, "{kind}");
            // Cross traffic to both ends makes frames wait as it does on a network alone.
            let flow = |number, to| Load {
                number,
                from: None,
                to: Port(to),
                rho: Ratio::new(6, 10),
                law: Law::Poisson,
                size: FULL,
                class: Class(0),
            };
            let think = Span::picos(7_141_592_650);
            let mean = |halves: Vec<Span>| {
                let sum: u64 = halves.iter().map(|half| half.as_picos()).sum();
                sum as f64 / halves.len() as f64
            };
            let quiet = mean(path.loaded(&[], FULL, 10, think).unwrap());
            assert!((quiet - alone.as_picos() as f64).abs() < 1.0, "{kind}");
            let wait = |halves, idle: Span| mean(halves) - idle.as_picos() as f64;
            let beside = wait(
                path.loaded(&[flow(0, 0), flow(1, 5)], FULL, 2_000, think)
                    .unwrap(),
                alone,
            );
            let flows = [flow(0, 0), flow(1, 1)];
            let halves = crate::loaded_round_trips(&spec, &flows, FULL, 2_000, think).unwrap();
            let of_one = wait(halves, one_way(&spec, FULL).unwrap().0);
            let ratio = beside / of_one;
            assert!((0.9..1.1).contains(&ratio), "{kind}: {beside} {of_one}");
        }
    }

    #[test]
    fn hippi_at_both_ends_is_as_fast_as_the_line_between() {
        let site = sonde_link::resolve_site("rus-europe", &|_| unreachable!()).unwrap();
        let subnets = site.subnets().unwrap();
        let names = site.names();
        let number = |name: &str| names.iter().position(|one| *one == name).unwrap() as u16;
        let path = |to: &str| {
            let (from, to) = subnets.between(number("c94"), number(to)).unwrap();
            let site = &site;
            Between { site, from, to }
        };
        let (here, near, far) = (path("t3d"), path("partner-1"), path("abroad-1"));
        // From the partner in the country to the one abroad it is a line and a router more.
        let mtu = Bytes(near.mtu());
        let line = &site.segment[2].network;
        let way = |path: Between<'_>| path.one_way(mtu).unwrap().0;
        let more = one_way(line, mtu).unwrap().0 + Span::micros(30);
        assert_eq!(way(far), way(near) + more);
        assert!(more > Span::millis(15) && way(here) < Span::millis(1));
        // A stream has what the wide-area line has, a twentieth of what HIPPI would carry.
        let rate = |path: Between<'_>| path.tcp(&Sender::modern()).unwrap();
        let alone = tcp_expected(line, &Sender::modern()).unwrap();
        for rate in [rate(near), rate(far)] {
            assert!(rate.abs_diff(alone) * 50 < alone, "{rate} {alone}");
        }
        assert!(rate(here) > 10 * alone, "{}", rate(here));
    }

    #[test]
    fn distance_between_cities_is_paid_once_each_way() {
        let of = |delay: &str| {
            let selector = format!("two-cities:line.delay={delay}");
            let site = sonde_link::resolve_site(&selector, &|_| unreachable!()).unwrap();
            let path = Between {
                site: &site,
                from: Port(0),
                to: Port(7),
            };
            let window = Sender::era(Bytes(65_535));
            let (modern, era) = (path.tcp(&Sender::modern()), path.tcp(&window));
            let mtu = Bytes(path.mtu());
            (path.one_way(mtu).unwrap().0, modern.unwrap(), era.unwrap())
        };
        // The printed 50 to 250 us, an ocean, and a satellite.
        let (near, most, _) = of("50us");
        for (delay, more) in [
            ("250us", Span::micros(200)),
            ("35ms", Span::micros(34_950)),
            ("250ms", Span::micros(249_950)),
        ] {
            let (way, modern, era) = of(delay);
            assert_eq!(way, near + more, "{delay}");
            // A window of megabytes fills the line up to an ocean; the whole segments of one of 64 KiB come once in a round trip.
            let large = Sender::modern();
            let window = large.receive_window.min(large.send_buffer).0 * 8;
            let due = most.min(window * 1_000_000_000 / (way + way).as_nanos());
            assert!(
                modern.abs_diff(due) * 50 <= due,
                "{delay}: {modern} of {due}"
            );
            if more > Span::millis(10) {
                let segment = 9_180 - 40;
                let window = (65_535 / segment * segment * 8) as f64;
                let turns = 1e12 / (way + way).as_picos() as f64;
                let (least, most) = (turns.floor() * window, turns.ceil() * window);
                let era = era as f64;
                assert!(
                    era > 0.98 * least && era < 1.02 * most,
                    "{delay}: {era} of {least} to {most}"
                );
            }
        }
    }

    #[test]
    fn a_path_is_the_sum_of_its_segments() {
        let mut text = "name = \"row\"\nsummary = \"row\"\n".to_owned();
        for n in 0..4 {
            text += &format!(
                "[[segment]]\nname = \"s{n}\"\nnetwork = \"ethernet-100\"\nhosts = [\"x{n}-[1-2]\"]\n"
            );
        }
        for n in 1..4 {
            text += &format!(
                "[[bridge]]\nname = \"b{n}\"\njoins = [\"s{}\", \"s{n}\"]\nlatency = \"30us\"\n",
                n - 1
            );
        }
        let site = parse_site("row", &text, &|_| unreachable!()).unwrap();
        let spec = resolve("ethernet-100", &|_| unreachable!()).unwrap();
        let alone = one_way(&spec, Bytes(1_500)).unwrap().0;
        let sender = Sender::modern();
        let most = tcp_expected(&spec, &sender).unwrap();
        for bridges in 0..4_u16 {
            let path = Between {
                site: &site,
                from: Port(0),
                to: Port(2 * bridges + 1),
            };
            let due = alone * u64::from(bridges + 1) + Span::micros(30) * u64::from(bridges);
            assert_eq!(path.one_way(Bytes(1_500)).unwrap().0, due, "{bridges}");
            let rate = path.tcp(&sender).unwrap();
            assert!(
                rate <= most && rate > most * 995 / 1_000,
                "{bridges}: {rate} of {most}"
            );
        }
        // Routers in place of bridges, and a first segment of longer frames, whose sender keeps to the path's.
        let text = text.replace("[[bridge]]", "[[router]]").replacen(
            "ethernet-100",
            "ethernet-100:mtu=9000",
            1,
        );
        let site = parse_site("row", &text, &|_| unreachable!()).unwrap();
        for routers in 1..4_u16 {
            let path = Between {
                site: &site,
                from: Port(0),
                to: Port(2 * routers + 1),
            };
            let due = alone * u64::from(routers + 1) + Span::micros(30) * u64::from(routers);
            assert_eq!(path.one_way(Bytes(1_500)).unwrap().0, due, "{routers}");
            let rate = path.tcp(&sender).unwrap();
            assert!(
                rate <= most && rate > most * 995 / 1_000,
                "{routers}: {rate} of {most}"
            );
        }
        let long = Between {
            site: &site,
            from: Port(0),
            to: Port(2),
        }
        .one_way(Bytes(1_501));
        assert!(matches!(long, Err(TimeError::TooLong { .. })));
    }
}
