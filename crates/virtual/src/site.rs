//! What a path over the segments of a site does when nothing else is on it.
//!
//! Model:   the site itself is run between two of its hosts. Load, faults, loss and reordering of its networks are left out. Frames
//!          went both ways before, so that no bridge sends to all.
//! Checked: `a_path_is_the_sum_of_its_segments`.

use crate::Clock;
use crate::idle::{Built, TimeError, frame, hush, travel};
use crate::meter::Reason;
use crate::stream::watched;
use crate::tcp::Sender;
use crate::tcp::traffic::{Flow, Traffic};
use sonde_link::{Port, SiteSpec, SpecError, join};
use sonde_units::{Bytes, Instant, OneWay, Span};

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

impl Between<'_> {
    /// The site with nothing on it.
    fn quiet(self) -> Result<Built, SpecError> {
        let mut quiet = self.site.clone();
        quiet
            .segment
            .iter_mut()
            .for_each(|one| hush(&mut one.network));
        join(&quiet, 0, Vec::new())
    }

    /// The longest frame that comes to the other host as one.
    fn mtu(self) -> u64 {
        self.site.path_mtu(self.from, self.to).unwrap_or(0)
    }

    /// From the offer of a frame of `len` layer-3 bytes to its last bit at the other host.
    ///
    /// # Errors
    /// [`TimeError`], also where `len` is above the path's MTU.
    pub fn one_way(self, len: Bytes) -> Result<OneWay, TimeError> {
        self.turn(len).map(|(there, _)| OneWay(there))
    }

    /// A frame there, and one as long back when it has come.
    fn turn(self, len: Bytes) -> Result<(Span, Span), TimeError> {
        let mtu = self.mtu();
        if len.0 > mtu {
            return Err(TimeError::TooLong { len, mtu });
        }
        let Self { from, to, .. } = self;
        let mut clock: Clock<Built> = Clock::new(self.quiet()?);
        travel(&mut clock, frame(0, from, to, len), to)?;
        let end = travel(&mut clock, frame(1, to, from, len), from)?;
        // The line is idle again.
        let begin = end + Span::millis(1);
        clock.run_until(begin, |_, _| {});
        let middle = travel(&mut clock, frame(2, from, to, len), to)?;
        let end = travel(&mut clock, frame(3, to, from, len), from)?;
        Ok((middle.since(begin), end.since(begin)))
    }

    /// The rate of user bytes at the receiver in the second after the first, in bits a second.
    ///
    /// # Errors
    /// [`Reason`]: why nothing can be expected.
    pub fn tcp(self, sender: &Sender) -> Result<u64, Reason> {
        const SECOND: Span = Span::secs(1);
        let mut traffic = self.traffic(sender, &[self], None)?;
        traffic.begin(0);
        let (rates, _) = watched(&mut traffic, 1, Instant::START + SECOND, SECOND)?;
        Ok(rates.first().copied().unwrap_or(0))
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
        let mut traffic = Traffic::new(self.quiet()?, mtu, sender, &flows)?;
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
    use sonde_link::{parse_site, resolve};

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
