//! Half a round trip through a network with background traffic.
//!
//! Model:   a frame there, at its arrival one of the same length back, then the next; before each frame a host thinks for a
//!          given time. Back to back, as a probe does it, the frames are a load of their own: with a long thinking time each
//!          finds the queues as they are in the mean. Circuits are up; what comes in the first 20 ms is not counted.
//! Units:   half of each round trip, in picoseconds.
//! Checked: `a_lone_cell_waits_as_in_m_d_1`, `without_a_load_nothing_waits`.

use crate::Clock;
use crate::idle::{BEGUN, Built, FAR, NEAR, TimeError, frame, idle_clock, travel};
use sonde_link::{Command, Flow, NetworkSpec, Port, Refused};
use sonde_units::{Bytes, Span};
use thiserror::Error;

/// Queues have found their length after this.
const BEGIN: Span = Span::millis(20);

/// Why there is no time.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LoadedError {
    /// The frame has none.
    #[error(transparent)]
    Time(#[from] TimeError),
    /// The network refuses a flow.
    #[error("the load cannot be made: {0}")]
    Flow(#[from] Refused),
}

/// Halves of `count` round trips of frames of `len` layer-3 bytes, with `flows` on the network and hosts that think for
/// `think` before each frame; without the thinking.
///
/// # Errors
/// [`LoadedError`]: the frame does not fit or was lost, or a flow is not for this network.
pub fn loaded_round_trips(
    spec: &NetworkSpec,
    flows: &[Flow],
    len: Bytes,
    count: usize,
    think: Span,
) -> Result<Vec<Span>, LoadedError> {
    halves(idle_clock(spec)?, (NEAR, FAR), flows, len, count, think)
}

/// The same over a network, between two of its ports.
pub(crate) fn halves(
    mut clock: Clock<Built>,
    (near, far): (Port, Port),
    flows: &[Flow],
    len: Bytes,
    count: usize,
    think: Span,
) -> Result<Vec<Span>, LoadedError> {
    for flow in flows {
        clock.command(Command::Load(*flow))?;
    }
    let mut halves = Vec::with_capacity(count);
    let warm = clock.now() + BEGIN;
    let mut number = BEGUN;
    while halves.len() < count {
        let mut way = |from, to| {
            clock.run_until(clock.now() + think, |_, _| {});
            let begin = clock.now();
            number += 1;
            let end = travel(&mut clock, frame(number, from, to, len), to)?;
            Ok::<_, TimeError>((begin, end.since(begin)))
        };
        let (begin, there) = way(near, far)?;
        let (_, back) = way(far, near)?;
        if begin >= warm {
            halves.push(Span::picos((there + back).as_picos() / 2));
        }
    }
    Ok(halves)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::round_trip;
    use sonde_link::{Class, Law, resolve};
    use sonde_units::Ratio;

    /// No multiple of any frame's time, so that periodic traffic is met at all its phases.
    const PAUSE: Span = Span::picos(714_159_265);

    fn flows(rho: Ratio) -> [Flow; 2] {
        [NEAR, FAR].map(|to| Flow {
            number: to.0 as u8,
            from: None,
            to,
            rho,
            law: Law::Poisson,
            size: Bytes(0),
            class: Class(0),
        })
    }

    /// The mean wait of M/D/1, rho / 2 (1 - rho) cells, in each direction.
    #[test]
    fn a_lone_cell_waits_as_in_m_d_1() {
        let spec = resolve("atm-oc3c", &|_| unreachable!()).unwrap();
        let idle = round_trip(&spec, Bytes(32)).unwrap().0.as_picos() as f64 / 2.0;
        let cell = spec.line.unit_time(Bytes(53)).as_picos() as f64;
        for (tenths, cells) in [(6, 0.75), (9, 4.5)] {
            let rho = Ratio::new(tenths, 10);
            let halves = loaded_round_trips(&spec, &flows(rho), Bytes(32), 3_000, PAUSE).unwrap();
            let waits: Vec<_> = halves
                .iter()
                .map(|half| (half.as_picos() as f64 - idle) / cell)
                .collect();
            let count = waits.len() as f64;
            let mean = waits.iter().sum::<f64>() / count;
            let variance = waits.iter().map(|wait| (wait - mean).powi(2)).sum::<f64>() / count;
            // Four standard errors of a mean of independent samples.
            let error = 4.0 * (variance / count).sqrt();
            assert!(
                (mean - cells).abs() < error,
                "rho 0.{tenths}: {mean}, not {cells} within {error}"
            );
            assert!(error < cells / 5.0);
        }
    }

    #[test]
    fn without_a_load_nothing_waits() {
        let spec = resolve("ethernet-100", &|_| unreachable!()).unwrap();
        let idle = round_trip(&spec, Bytes(1_000)).unwrap().0.as_picos() / 2;
        let halves = loaded_round_trips(&spec, &[], Bytes(1_000), 3, PAUSE).unwrap();
        assert_eq!(halves, [Span::picos(idle); 3]);
    }
}
