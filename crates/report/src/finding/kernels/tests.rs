//! Each rule on runs that trigger it and on runs that do not.

use super::*;
use crate::testing::{Runs, net};
use sonde_measure::Quantity;

const NET: &str = "atm-oc3c";
const MS: u64 = 1_000_000;

fn runs() -> Runs {
    Runs::new()
        .network(net(NET).technology("atm"))
        .spread(0.01)
        .on(4)
}

/// The finding of a rule, which is one.
fn one(runs: Runs, rule: &str) -> Finding {
    let mut found = of(runs, rule);
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

fn of(runs: Runs, rule: &str) -> Vec<Finding> {
    let run = runs.done();
    let mut found = all(&Index::new(&run));
    found.retain(|finding| finding.rule == rule);
    found
}

#[test]
fn the_direct_route_is_held_against_the_default_one() {
    let found = one(
        runs()
            .kernel(NET, "pvm:default", "is upc 4", 1_530 * MS)
            .kernel(NET, "pvm:direct", "is upc 4", 1_020 * MS)
            .kernel(NET, "pvm:default", "ep upc 4", 1_000 * MS)
            .kernel(NET, "pvm:direct", "ep upc 4", 1_000 * MS),
        "kernel-route",
    );
    assert_eq!(
        found.sentence,
        "On atm-oc3c (class upc, 4 ranks) kernels take longer over pvm:default than over pvm:direct, significantly in 1 of 2: 1.50 times; not EP idle (1.00)."
    );
    // Table 2: 15.3 over 11.34 s, and 22.71 over 22.29 s.
    assert_eq!(
        found.arithmetic.as_deref(),
        Some("IS idle 1.50 (printed 1.35), EP idle 1.00 (printed 1.02)")
    );
    assert_eq!(found.severity, Severity::Note);
    assert_eq!(found.network.as_deref(), Some(NET));
    // One route alone, and both on one host, are nothing to compare.
    let alone = runs().kernel(NET, "pvm:default", "is upc 4", MS);
    assert_eq!(of(alone, "kernel-route"), []);
    let collapsed = runs()
        .on(1)
        .kernel(NET, "pvm:default", "is upc 4", 2 * MS)
        .kernel(NET, "pvm:direct", "is upc 4", MS);
    assert_eq!(of(collapsed, "kernel-route"), []);
}

#[test]
fn without_intervals_medians_are_told_as_such() {
    let found = one(
        runs()
            .launches(2)
            .kernel(NET, "pvm:default", "cg S 4", 3_000 * MS)
            .kernel(NET, "pvm:direct", "cg S 4", 1_000 * MS)
            .kernel(NET, "pvm:default", "ep S 4", 990 * MS)
            .kernel(NET, "pvm:direct", "ep S 4", 1_000 * MS),
        "kernel-route",
    );
    assert!(
        found.sentence.ends_with(
            "over pvm:direct, by their medians in 1 of 2: 3.00 times; not EP idle (0.990); significance is not known: a \
             confidence interval needs six repetitions."
        ),
        "{found:?}"
    );
    // One level: nothing grows from level to level.
    let one_level = runs()
        .kernel(NET, "pvm:direct", "is upc 4", MS)
        .load("0.9")
        .kernel(NET, "pvm:direct", "is upc 4", 4 * MS);
    let found = one(one_level, "kernel-load");
    assert!(
        found.sentence.ends_with("in 1 of 1: 4.00 times."),
        "{found:?}"
    );
}

/// Two kernels under three levels: one grows with each, the other does not.
fn loaded() -> Runs {
    let both = |runs: Runs, is: u64, ep: u64| {
        runs.kernel(NET, "pvm:direct", "is upc 4", is * MS).kernel(
            NET,
            "pvm:direct",
            "ep upc 4",
            ep * MS,
        )
    };
    let runs = both(runs(), 1_000, 1_000);
    let runs = both(runs.load("0.6"), 1_500, 990);
    both(runs.load("0.9"), 4_000, 1_002)
}

#[test]
fn a_load_is_held_against_none() {
    let found = one(loaded(), "kernel-load");
    assert_eq!(
        found.sentence,
        "Under load on atm-oc3c (class upc, 4 ranks) kernels over pvm:direct take longer than idle, significantly in 1 of 2: 4.00 times; not EP at 0.9 (1.00); the time grows with each level in 1 of 2."
    );
    assert_eq!(
        found.arithmetic.as_deref(),
        Some("IS 1.50 at 0.6 and 4.00 at 0.9; EP 0.990 at 0.6 and 1.00 at 0.9")
    );
    let idle = runs().kernel(NET, "pvm:direct", "is upc 4", MS);
    assert_eq!(of(idle, "kernel-load"), []);
    let never_idle = runs().load("0.9").kernel(NET, "pvm:direct", "is upc 4", MS);
    assert_eq!(of(never_idle, "kernel-load"), []);
}

#[test]
fn a_load_adds_more_by_one_route() {
    let added = runs()
        .kernel(NET, "pvm:default", "is upc 4", 1_200 * MS)
        .kernel(NET, "pvm:direct", "is upc 4", 1_000 * MS)
        .load("0.9")
        .kernel(NET, "pvm:default", "is upc 4", 4_000 * MS)
        .kernel(NET, "pvm:direct", "is upc 4", 3_000 * MS);
    let found = one(added, "kernel-route-load");
    assert_eq!(
        found.sentence,
        "On atm-oc3c (class upc, 4 ranks) the highest load adds more time over pvm:default than over pvm:direct in 1 of 1 kernels."
    );
    assert_eq!(found.arithmetic.as_deref(), Some("IS 2.800 s and 2.000 s"));
    assert_eq!(of(loaded(), "kernel-route-load"), []);
}

/// LU alone, collapsed and on four hosts.
fn placed(four: u64) -> Runs {
    runs()
        .kernel(NET, "pvm:direct", "lu S 4", four * MS)
        .on(1)
        .kernel(NET, "native:tcp", "lu S 1", 1_000 * MS)
        .kernel(NET, "pvm:direct", "lu S 4", 1_200 * MS)
        .kernel(NET, "native:shm", "lu S 4", 250 * MS)
}

#[test]
fn hosts_are_held_against_one() {
    let found = one(placed(500), "kernel-placement");
    assert_eq!(
        found.sentence,
        "4 hosts of atm-oc3c (class S) beat every run on one host, shared memory aside, significantly in 1 of 1: 2.00 times."
    );
    let found = one(placed(2_000), "kernel-placement");
    assert_eq!(
        (found.sentence.as_str(), found.arithmetic.as_deref()),
        (
            "No kernel (class S) is faster on 4 hosts of atm-oc3c than on one host, shared memory aside.",
            Some("LU idle 0.500 (printed 2.11)")
        )
    );
    let nowhere = runs().kernel(NET, "pvm:direct", "lu S 4", MS);
    assert_eq!(of(nowhere, "kernel-placement"), []);
}

#[test]
fn shared_memory_is_beaten_or_not() {
    let found = one(placed(500), "kernel-reference");
    assert_eq!(
        found.sentence,
        "The fastest runs over atm-oc3c take 2.00 times as long as 4 ranks over native:shm on one host, which is beaten in 0 of 1 \
         kernels."
    );
    let found = one(placed(125), "kernel-reference");
    assert!(found.sentence.contains("beaten in 1 of 1"), "{found:?}");
    let nothing_shared = runs().kernel(NET, "pvm:direct", "lu S 4", MS).on(1).kernel(
        NET,
        "native:tcp",
        "lu S 1",
        MS,
    );
    assert_eq!(of(nothing_shared, "kernel-reference"), []);
}

#[test]
fn several_ranks_on_one_host_under_load() {
    let one_host = |loaded: u64| {
        runs()
            .on(1)
            .kernel(NET, "pvm:direct", "lu S 4", 1_000 * MS)
            .kernel(NET, "native:tcp", "lu S 1", 1_000 * MS)
            .load("0.9")
            .kernel(NET, "pvm:direct", "lu S 4", loaded * MS)
            .kernel(NET, "native:tcp", "lu S 1", 3_000 * MS)
    };
    let found = one(one_host(2_000), "kernel-one-host");
    assert_eq!(
        found.sentence,
        "At load 0.9 on atm-oc3c (class S) several ranks on one host over pvm:direct are slowed less than one rank alone in 1 of 1 kernels."
    );
    assert_eq!(found.arithmetic.as_deref(), Some("LU 2.00 and 3.00 times"));
    let found = one(one_host(4_000), "kernel-one-host");
    assert!(found.sentence.contains("in 0 of 1"), "{found:?}");
    assert_eq!(of(placed(500), "kernel-one-host"), []);
}

#[test]
fn messages_are_beside_the_paper() {
    let counted = |class: &str| {
        runs()
            .kernel(NET, "pvm:direct", &format!("ft {class} 4"), MS)
            .beside(Quantity::Messages, 93)
            .kernel(NET, "pvm:direct", &format!("lu {class} 4"), MS)
            .beside(Quantity::Messages, 21_057)
    };
    let found = one(counted("S"), "kernel-messages");
    assert_eq!(
        found.sentence,
        "Ranks send 0.500 to 1.00 times the messages that UPC SABA, virtual parallel machine on a broadband ATM network, Table 1 \
         counts, in 2 kernels."
    );
    assert_eq!(
        found.arithmetic.as_deref(),
        Some("FT 93 of 186, LU 21 057 of 21 057")
    );
    assert_eq!(of(counted("A"), "kernel-messages"), []);
}

#[test]
fn lost_frames_are_held_against_a_network_that_loses_fewer() {
    let small = "atm-oc3c:buffer=256cells";
    let kernel = |runs: Runs, name: &str, ms: u64, ppm: u64| {
        runs.kernel(name, "pvm:direct", "is upc 4", ms * MS)
            .beside(Quantity::NetworkLostShare, ppm)
    };
    let both = |ppm| {
        let runs = kernel(runs().load("0.9"), NET, 100, 0);
        kernel(runs.network(net(small).technology("atm")), small, 450, ppm)
    };
    let found = one(both(12_000), "kernel-loss");
    assert_eq!(
        found.sentence,
        "atm-oc3c:buffer=256cells (class upc, 4 ranks) lost up to 1.2 % of the frames of kernels over pvm:direct; where a network of this run loses fewer they take less time, significantly in 1 of 1: 4.50 times."
    );
    let since = found.arithmetic.unwrap();
    assert!(
        since.ends_with("IS at 0.9 lost 1.2 %; times relative to those: IS at 0.9 4.50"),
        "{since}"
    );
    assert_eq!(found.network.as_deref(), Some(small));
    // Nothing lost, and nothing to hold it against.
    assert_eq!(of(both(0), "kernel-loss"), []);
    let alone = one(kernel(runs(), NET, 100, 900), "kernel-loss");
    assert!(alone.sentence.ends_with("over pvm:direct."), "{alone:?}");
}
