//! The flows that run: whose frame comes next, and when.
//!
//! Model:   each flow has draws of its own, so that what one does is the same whatever others do. Of flows whose frames come
//!          at the same time the one that was started first goes first. A flow whose host is down or whose time is beyond all
//!          bounds sends nothing.
//! Units:   picoseconds.
//! Checked: `tests/loads.rs`, `a_sum_of_on_and_off_is_self_similar`.

use super::laws::Distances;
use super::{Captured, FLOWS_MAX, Flow, GHOST, Law};
use crate::network::Refused;
use crate::{
    Class, Counters, Ecn, FlowCounters, Frame, FrameId, Framing, Kind, NetworkSpec, Port, To,
};
use rand_core::SeedableRng;
use rand_pcg::Pcg64Mcg;
use sonde_units::{Bytes, Instant, Ratio, Span};

/// Keeps the draws of load apart from all others.
const STREAM: u64 = 0x10ad_5eed_9e37_79b9;
/// No frame comes later.
const NEVER: u64 = u64::MAX / 2;

/// What a flow does next.
enum Pace {
    Drawn(Distances, Pcg64Mcg),
    /// The flow's part of the capture, with its begin and the place in it.
    Replayed(Vec<Captured>, Instant, usize),
}

/// A flow that runs.
struct Source {
    frame: Frame,
    to: Port,
    pace: Pace,
}

/// The flows of a network.
pub(crate) struct Sources {
    ports: u16,
    seed: u64,
    capture: Vec<Captured>,
    /// By the place of a flow in the counters.
    flows: Vec<Option<Source>>,
    /// When the next frame of each comes, `u64::MAX` for never: apart, since all are looked at for every frame.
    times: Vec<u64>,
    first: Option<usize>,
    frames: u64,
    started: u64,
}

impl Sources {
    pub fn new(ports: u16, seed: u64, capture: Vec<Captured>) -> Self {
        Self {
            ports,
            seed: seed ^ STREAM,
            capture,
            flows: Vec::new(),
            times: Vec::new(),
            first: None,
            frames: 0,
            started: 0,
        }
    }

    /// When the next frame comes.
    pub fn next_at(&self) -> Option<Instant> {
        self.first
            .map(|first| Instant::from_picos(self.times[first]))
    }

    /// Whether `flow` can be.
    ///
    /// # Errors
    /// [`Refused::Value`], [`Refused::NotHere`].
    pub fn check(flow: &Flow, spec: &NetworkSpec) -> Result<(), Refused> {
        let refuse = |what, value: String, remedy| {
            Err(Refused::Value {
                what,
                value,
                remedy,
            })
        };
        if flow.number >= FLOWS_MAX {
            return refuse(
                "the number of a flow",
                flow.number.to_string(),
                "give 0 to 63",
            );
        }
        if flow.rho > Ratio::ONE {
            return refuse("rho", flow.rho.to_string(), "a level is 0 to 1 of the link");
        }
        if flow.size.0 > spec.mtu {
            let remedy = "give at most the MTU, or 0 for one cell or a full frame";
            return refuse("the size of a flow's frames", flow.size.to_string(), remedy);
        }
        if let Law::OnOff(0) | Law::SelfSimilar(0) = flow.law {
            return refuse("a burst", "0 frames".into(), "give at least 1");
        }
        if spec.line.rate.is_none() && flow.law != Law::Replay {
            return Err(Refused::NotHere {
                what: "rate that a load could take a share of",
                remedy: "choose a network with a rate, such as ethernet-100",
            });
        }
        Ok(())
    }

    /// The captured frames that `flow` replays.
    fn captured(&self, flow: &Flow, spec: &NetworkSpec) -> Result<Vec<Captured>, Refused> {
        let belongs = |frame: &&Captured| {
            frame.to == flow.to && (flow.from.is_none() || frame.from == flow.from)
        };
        let mut frames: Vec<_> = self.capture.iter().filter(belongs).copied().collect();
        if frames.is_empty() {
            return Err(Refused::NotHere {
                what: "captured frame for this flow",
                remedy: "give the network a capture with frames to this station, or choose another law",
            });
        }
        if let Some(long) = frames.iter().find(|frame| frame.len.0 > spec.mtu) {
            return Err(Refused::Value {
                what: "the length of a captured frame",
                value: long.len.to_string(),
                remedy: "capture with the MTU of this network, or raise `mtu`",
            });
        }
        frames.sort_by_key(|frame| frame.after);
        Ok(frames)
    }

    /// Starts, changes or ends a flow.
    ///
    /// # Errors
    /// [`Refused`]; nothing is changed then.
    pub fn set(
        &mut self,
        now: Instant,
        flow: Flow,
        spec: &NetworkSpec,
        counters: &mut Counters,
    ) -> Result<(), Refused> {
        Self::check(&flow, spec)?;
        let known = counters
            .flows
            .iter()
            .position(|f| f.flow.number == flow.number);
        if flow.rho.is_zero() {
            if let Some(slot) = known.filter(|slot| self.flows[*slot].is_some()) {
                counters.flows[slot].until = Some(now);
                self.flows[slot] = None;
                self.arm(slot, u64::MAX);
            }
            return Ok(());
        }
        let slot = known.unwrap_or(counters.flows.len());
        let len = size(&flow, spec);
        let mut unit = spec.frame_time(len);
        let seed = self.seed ^ (u64::from(flow.number) << 32) ^ (self.started << 40);
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let (pace, wait) = match Distances::new(flow.law, unit, flow.rho) {
            Some(mut distances) => {
                let wait = distances.first(now.as_picos(), &mut random);
                (Pace::Drawn(distances, random), wait)
            }
            None => {
                let frames = self.captured(&flow, spec)?;
                let times = frames
                    .iter()
                    .map(|frame| u128::from(spec.frame_time(frame.len).as_picos()));
                unit = Span::picos((times.sum::<u128>() / frames.len() as u128) as u64);
                let wait = frames[0].after.as_picos();
                (Pace::Replayed(frames, now, 0), wait)
            }
        };
        self.started += 1;
        if known.is_none() {
            self.flows.push(None);
            self.times.push(u64::MAX);
        }
        let counted = FlowCounters {
            flow,
            since: now,
            until: None,
            frame_time: unit,
            sent: 0,
            sent_bytes: Bytes::ZERO,
            arrived: 0,
            arrived_bytes: Bytes::ZERO,
            lost: 0,
        };
        match counters.flows.get_mut(slot) {
            Some(earlier) => *earlier = counted,
            None => counters.flows.push(counted),
        }
        let elsewhere = Port(self.ports + u16::from(flow.number));
        let frame = Frame {
            id: FrameId(GHOST),
            from: flow.from.unwrap_or(elsewhere),
            to: To::One(flow.to),
            len,
            kind: Kind::Other,
            class: Class(flow.class.0),
            ecn: Ecn::NotCapable,
            flow: slot as u64,
        };
        let to = flow.to;
        self.flows[slot] = Some(Source { frame, to, pace });
        self.arm(slot, now.as_picos().saturating_add(wait));
        Ok(())
    }

    /// The next frame of flow `slot` comes at `at`.
    fn arm(&mut self, slot: usize, at: u64) {
        self.times[slot] = if at > NEVER { u64::MAX } else { at };
        let mut first = (u64::MAX, None);
        for (slot, &at) in self.times.iter().enumerate() {
            if at < first.0 {
                first = (at, Some(slot));
            }
        }
        self.first = first.1;
    }

    /// The frame that comes next, its time and its end.
    pub fn pop(&mut self) -> Option<(Instant, Frame, Port)> {
        let slot = self.first?;
        let at = self.times[slot];
        let source = self.flows[slot].as_mut()?;
        let mut frame = source.frame;
        frame.id = FrameId(GHOST | self.frames);
        self.frames = (self.frames + 1) % GHOST;
        let next = match &mut source.pace {
            Pace::Drawn(distances, random) => at.saturating_add(distances.next(random)),
            Pace::Replayed(frames, begin, place) => {
                frame.len = frames[*place].len;
                *place += 1;
                let next = frames.get(*place);
                next.map_or(u64::MAX, |next| {
                    begin.as_picos().saturating_add(next.after.as_picos())
                })
            }
        };
        let to = source.to;
        self.arm(slot, next);
        Some((Instant::from_picos(at), frame, to))
    }
}

/// The length of a flow's frames.
pub(crate) fn size(flow: &Flow, spec: &NetworkSpec) -> Bytes {
    let framing = spec.line.framing();
    match framing {
        _ if flow.size.0 > 0 => flow.size,
        Framing::Atm(_) => {
            let one_cell = (0..=48)
                .rev()
                .map(Bytes)
                .find(|len| framing.units(*len) == 1);
            one_cell.unwrap_or(Bytes(1))
        }
        _ => Bytes(spec.mtu),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::named;

    /// The variance of counts in windows of `m` slots falls as m^(2H - 2) for the mean over a window.
    fn hurst(counts: &[f64]) -> f64 {
        let mut points = Vec::new();
        for shift in [2, 4, 6, 8, 10] {
            let m = 1usize << shift;
            let means: Vec<f64> = counts
                .chunks_exact(m)
                .map(|window| window.iter().sum::<f64>() / m as f64)
                .collect();
            let mean = means.iter().sum::<f64>() / means.len() as f64;
            let variance =
                means.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / means.len() as f64;
            points.push(((m as f64).ln(), variance.ln()));
        }
        let n = points.len() as f64;
        let (x, y) = points
            .iter()
            .fold((0.0, 0.0), |(x, y), p| (x + p.0 / n, y + p.1 / n));
        let slope = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum::<f64>()
            / points.iter().map(|p| (p.0 - x).powi(2)).sum::<f64>();
        1.0 + slope / 2.0
    }

    fn counts(law: Law, seed: u64) -> Vec<f64> {
        let spec = named("atm-oc3c").unwrap();
        let mut sources = Sources::new(2, seed, Vec::new());
        let mut counters = Counters::new(2);
        for number in 0..32 {
            let flow = Flow {
                number,
                from: None,
                to: Port(1),
                rho: Ratio::new(1, 64),
                law,
                size: Bytes::ZERO,
                class: Class::default(),
            };
            sources
                .set(Instant::START, flow, &spec, &mut counters)
                .unwrap();
        }
        // Windows of ten bursts: shorter ones see single bursts.
        let window = spec.frame_time(Bytes(1)) * 100;
        let mut counts = vec![0.0; 1 << 17];
        loop {
            let (at, ..) = sources.pop().unwrap();
            match counts.get_mut((at.since(Instant::START) / window) as usize) {
                Some(count) => *count += 1.0,
                None => return counts,
            }
        }
    }

    #[test]
    fn a_sum_of_on_and_off_is_self_similar() {
        let hursts: Vec<f64> = (1..=4)
            .map(|seed| hurst(&counts(Law::SelfSimilar(10), seed)))
            .collect();
        let mean = hursts.iter().sum::<f64>() / 4.0;
        assert!((0.65..=0.85).contains(&mean), "{hursts:?}");
        // Of exponential lengths it is not.
        let hurst = hurst(&counts(Law::OnOff(10), 1));
        assert!((0.45..=0.57).contains(&hurst), "{hurst}");
    }
}
