//! Short words of the command line and of plans: knobs, paths, methods, paces, profiles, sets of pairs, collectives.

use sonde_fleet::{Choice, Listen, Selector};
use sonde_lab::Profile;
use sonde_measure::{KnobValues, Knobs, Method, Pace, Path};
use sonde_message::collectives;
use sonde_probe::pattern::sets::Set;
use sonde_workload::npb::{Kernel, Problem};

pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let _ = text.parse::<Path>();
    let _ = text.parse::<Method>();
    let _ = text.parse::<Profile>();
    let _ = text.parse::<sonde_message::Path>();
    let _ = text.parse::<Choice>();
    let _ = text.parse::<Selector>();
    let _ = text.parse::<Listen>();
    if let Ok(choice) = text.parse::<collectives::Choice>() {
        assert_eq!(choice.to_string().parse().ok(), Some(choice));
    }
    if let Ok(set) = text.parse::<Set>() {
        assert_eq!(set.to_string().parse().ok(), Some(set.clone()));
        for hosts in [0, 2, 7] {
            let _ = set.pairs(hosts);
        }
    }
    for kernel in Kernel::ALL {
        if let Ok(problem) = Problem::named(kernel.name(), text) {
            let _ = (problem.extent(), problem.iterations(), problem.parameters());
        }
    }
    let mut values: KnobValues = text
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    let _ = Pace::take(&mut values, 1);
    let _ = Knobs::parse(&values);
    sonde_cli::fuzz::words(text);
}
