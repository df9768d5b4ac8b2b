//! The verdict on all pairs of a lab's hosts, of times and rates: planted faults are found and named, each at its host or way.
//!
//! Model:   as `lab_verdict.rs`. Sixteen hosts take three times as long as eight: one test has them, in the long tier.

use crate::lab::is_long;
use crate::paired::lab_verdict::verdict_of;
use sonde_sys::noise::measured;

#[test]
fn a_slow_way_is_no_hosts() {
    measured(|| {
        let Some(said) = verdict_of(if is_long() { "16" } else { "8" }, &[], &["rate h3 2Mbit"])
        else {
            return;
        };
        assert!(
            said.contains("[host-slow] h3 is bad: streams to it"),
            "{said}"
        );
    });
}

/// Both at once wait behind each other: the direction is told by streams of one way alone.
#[test]
fn a_slow_direction_is_no_link() {
    measured(|| {
        let Some(said) = verdict_of("8", &[], &["rate h6 h3 5Mbit"]) else {
            return;
        };
        assert!(
            said.contains("[direction-slow] The direction from h6 to h3 is bad"),
            "{said}"
        );
        assert!(!said.contains("[link-slow]"), "{said}");
        assert!(said.contains("detectable here (80 % power)"), "{said}");
    });
}

#[test]
fn two_hosts_are_bad_each_in_its_way() {
    measured(|| {
        let faults = ["rate h1 2Mbit", "collide h8 30%"];
        let Some(said) = verdict_of("8", &[], &faults) else {
            return;
        };
        assert!(
            said.contains("[host-slow] h1 is bad: streams to it"),
            "{said}"
        );
        assert!(said.contains("[host-duplex] h8 is bad: frames"), "{said}");
    });
}
