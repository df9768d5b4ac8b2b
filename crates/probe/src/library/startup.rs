//! What ranks that were just started pay: the first message, and the second.
//!
//! Model:   `first` and `second` are round trips of the first size, the only one: a start-up has one size, since what a
//!          message has set up serves those after it. When the first was over is told, so that who started the ranks can add
//!          what came before.
//! Units:   nanoseconds.
//! Checked: `tests/library.rs`, `startup_*`.

use sonde_channel::payload;
use sonde_measure::{Measurement, Phase, Quantity, Step};
use sonde_message::Messenger;
use sonde_sys::clock::monotonic_ns;

use super::pair::{Pair, check};
use super::{DATA, Job, receive};
use crate::Result;
use crate::talk::{Measured, Served, SizeMeasured, SizeServed};
use crate::trips::{Carrier, Peer};
use crate::watch::Watch;

/// There and back, so often.
const MESSAGES: u32 = 2;

/// A step's row.
pub(super) fn row(step: Option<Step>, ns: u64) -> Measurement {
    Measurement {
        touched: None,
        quantity: Quantity::StartupNs,
        phase: Phase::Cold,
        step,
        series: [ns].into_iter().collect(),
        reason: None,
    }
}

/// Measures; when the first message was back.
pub(super) fn measure(
    messenger: &mut dyn Messenger,
    job: &Job,
    measured: &mut Measured,
) -> Result<u64> {
    let size_bytes = job.sizes_bytes[0];
    let mut ping = payload::message(size_bytes as usize);
    let mut pong = vec![0; size_bytes as usize];
    let mut pair = Pair {
        messenger,
        other: 1,
    };
    let mut rows = Vec::new();
    let mut first_ns = 0;
    let watch = Watch::begin_of(true)?;
    for (number, step) in [Step::First, Step::Second].into_iter().enumerate() {
        payload::stamp(&mut ping, number as u32);
        let begin_ns = monotonic_ns();
        pair.carry(&ping, &mut pong)?;
        let end_ns = monotonic_ns();
        payload::verify(&pong, number as u32)
            .map_err(|mismatch| Peer::Rank(1).differs(mismatch))?;
        rows.push(row(Some(step), end_ns - begin_ns));
        if step == Step::First {
            first_ns = end_ns;
        }
    }
    watch.end(&mut measured.interference, None)?;
    measured.sizes.push(SizeMeasured {
        moments: None,
        size_bytes,
        measurements: rows,
        round_trips: MESSAGES.into(),
        sent: None,
    });
    Ok(first_ns)
}

pub(super) fn serve(messenger: &mut dyn Messenger, job: &Job, served: &mut Served) -> Result<()> {
    let mut message = vec![0; job.sizes_bytes[0] as usize];
    let mut one = SizeServed::default();
    let watch = Watch::begin_of(true)?;
    for number in 0..MESSAGES {
        receive(messenger, 0, DATA, &mut message)?;
        messenger.send(sonde_message::Comm::WORLD, 0, DATA, &message)?;
        check(&message, number, job.verify)?;
        one.messages += 1;
        one.bytes += message.len() as u64;
    }
    watch.end(&mut served.interference, None)?;
    served.sizes.push(one);
    Ok(())
}
