//! `sonde lab replay`: a ledger of the lab under the virtual clock.
//!
//! Model:   what entered the network is offered again at the same times; the model must say the same in the same order.

use crate::exit::Outcome;
use crate::failure::Failure;
use crate::networks::micros;
use crate::output::say;
use sonde_link::ledger::Reader;
use sonde_sys::tell;
use sonde_units::Span;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// Lateness above this is counted apart.
const TOLERANCE: Span = Span::micros(50);

/// `sonde lab replay`; the exit code is 1 where lab and model part.
pub fn replay(path: &Path) -> Result<i32, Failure> {
    let cannot = |e: &dyn std::fmt::Display| {
        Failure::cannot(format!("cannot replay {}: {e}", path.display()))
    };
    let file = File::open(path).map_err(|e| cannot(&e))?;
    let reader = Reader::new(BufReader::new(file)).map_err(|e| cannot(&e))?;
    let header = reader.header().clone();
    let parity = sonde_virtual::replay(&header, reader, TOLERANCE).map_err(|e| cannot(&e))?;
    say!(
        "network     {} with {} hosts, seed {}",
        header.site.name,
        header.site.count(),
        header.seed
    );
    say!("offers      {}", parity.offers);
    say!("deliveries  {}", parity.deliveries);
    say!("losses      {}", parity.losses);
    let late = parity.lateness;
    let (mean, most) = (
        micros(Some(late.mean.as_nanos())),
        micros(Some(late.max.as_nanos())),
    );
    say!(
        "lateness    mean {mean} us, most {most} us, {} of {} beyond {TOLERANCE}, {} early",
        late.beyond,
        late.deliveries,
        late.early
    );
    if !parity.whole {
        tell!(
            "sonde: the ledger is incomplete (its lab was killed): entries missing at its end are not a difference"
        );
    }
    let broken = parity.first_difference.map(|one| one.to_string());
    match &broken {
        None => say!("parity      same admissions, same order, same losses"),
        Some(difference) => say!("parity      BROKEN: {difference}"),
    }
    let outcome = Outcome {
        is_measured: true,
        is_judged: true,
        failed: broken.into_iter().collect(),
        ..Outcome::default()
    };
    Ok(outcome.code())
}
