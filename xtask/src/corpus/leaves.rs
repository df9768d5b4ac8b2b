//! Which leaves of a launch the page's data depends on: what is measured and read by no one is lost all the same.
//!
//! Model:   each leaf of the launches of all frozen runs (a number, a word, a flag, a null) is changed by itself, to what the same
//!          leaf has elsewhere or to another value of its kind, and the page's data is worked out again. A leaf is read if
//!          any of these changes it. Leaves are named by their path, with `*` for a place in a list or a key of a map.
//! Checked: this is a test; the leaves that nothing reads stand in [`UNREAD`], at most one in ten.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use serde_json::Value;
use sonde_measure::{LaunchRecord, Run};
use sonde_record::Store;
use sonde_report::View;

use super::frozen::Stores;
use super::{Kind, manifest};

/// What nothing of the page depends on, and why.
const UNREAD: &[(&str, &str)] = &[
    (
        "launch.*.evidence.application.kernel.age",
        "null, of a kernel on a host of this age; the parts of an age are read",
    ),
    (
        "launch.*.evidence.sizes.*.rate_ended_by",
        "it is the same word in all frozen runs",
    ),
    (
        "launch.*.results.*.series.*.series.first.*",
        "a series whose parts contradict each other is refused",
    ),
    (
        "launch.*.results.*.series.*.series.max",
        "a series whose parts contradict each other is refused",
    ),
    (
        "launch.*.results.*.series.*.series.min",
        "a series whose parts contradict each other is refused",
    ),
    (
        "launch.*.verdict",
        "null, of a network that is not emulated; the parts of a verdict are read",
    ),
];

/// Of a leaf so many places are tried, and at each so many other values.
const PLACES_MAX: usize = 60;
const VALUES_MAX: usize = 3;
/// Maps whose keys are data.
const MAPS: [&str; 6] = [
    "sizes",
    "interfaces",
    "udp",
    "host",
    "load_flows",
    "network_losses",
];

/// A run, its launches as JSON and what the page has of them.
struct Shown {
    run: Run,
    launches: Value,
    data: Value,
}

/// Where a leaf is: which run, and its pointer in the launches.
type Place = (usize, String);

/// All places of each leaf, and the values that it has.
#[derive(Default)]
struct Leaf {
    places: Vec<Place>,
    values: BTreeSet<String>,
}

fn walk(value: &Value, name: &str, pointer: &str, found: &mut impl FnMut(&str, &str, &Value)) {
    match value {
        Value::Array(all) => {
            for (at, one) in all.iter().enumerate() {
                walk(one, &format!("{name}.*"), &format!("{pointer}/{at}"), found);
            }
        }
        Value::Object(all) => {
            let is_map = MAPS.contains(&name.rsplit('.').next().unwrap_or_default());
            for (key, one) in all {
                let inner = if is_map { "*" } else { key };
                let escaped = key.replace('~', "~0").replace('/', "~1");
                walk(
                    one,
                    &format!("{name}.{inner}"),
                    &format!("{pointer}/{escaped}"),
                    found,
                );
            }
        }
        leaf => found(name, pointer, leaf),
    }
}

/// Values in place of this one: those that the leaf has elsewhere, then others of its kind.
fn others(value: &Value, leaf: &Leaf) -> Vec<Value> {
    let elsewhere = leaf
        .values
        .iter()
        .filter_map(|text| serde_json::from_str(text).ok());
    let mut all: Vec<Value> = elsewhere
        .filter(|other| other != value)
        .take(VALUES_MAX)
        .collect();
    match value {
        Value::Bool(flag) => all.push((!flag).into()),
        Value::Number(number) => match number.as_u64() {
            Some(whole) => all.extend([whole * 3 + 1_000, whole + 1].map(Value::from)),
            None => all.push(
                number
                    .as_f64()
                    .map_or(Value::Null, |part| (part * 0.5 + 0.1).into()),
            ),
        },
        Value::String(word) => all.push(format!("{word}x").into()),
        Value::Null => all.extend([Value::from(7_000_000), "why".into()]),
        Value::Array(_) | Value::Object(_) => {}
    }
    all.push(Value::Null);
    all
}

fn shown(run: Run) -> Shown {
    Shown {
        launches: serde_json::to_value(&run.launches).unwrap(),
        data: serde_json::to_value(View::of(&run)).unwrap(),
        run,
    }
}

/// Whether the page's data is another with this leaf changed, at one of its places.
fn is_read(all: &mut [Shown], leaf: &Leaf) -> bool {
    let step = leaf.places.len().div_ceil(PLACES_MAX);
    for (which, pointer) in leaf.places.iter().step_by(step) {
        let one = &mut all[*which];
        let was = one.launches.pointer(pointer).unwrap().clone();
        for other in others(&was, leaf) {
            *one.launches.pointer_mut(pointer).unwrap() = other.clone();
            let launches = serde_json::from_value::<Vec<LaunchRecord>>(one.launches.clone());
            *one.launches.pointer_mut(pointer).unwrap() = was.clone();
            // What no launch can have is refused where it is read.
            let Ok(launches) = launches else { continue };
            let changed = Run {
                launches,
                ..one.run.clone()
            };
            let view = catch_unwind(AssertUnwindSafe(|| View::of(&changed)));
            let view = view.unwrap_or_else(|_| {
                panic!("{pointer} = {other} is a panic in {}", changed.head.id)
            });
            if serde_json::to_value(view).unwrap() != one.data {
                return true;
            }
        }
    }
    false
}

#[test]
fn nearly_every_leaf_of_a_launch_is_read() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus");
    if std::process::Command::new("xz")
        .arg("--version")
        .output()
        .is_err()
    {
        println!("skipped: xz is not installed, which unpacks the corpus");
        return;
    }
    let stores = Stores::new(&corpus).unwrap();
    let mut all = Vec::new();
    for entry in manifest(&corpus).unwrap().run {
        if entry.kind != Kind::Store {
            continue;
        }
        let store = Store::read(&stores.copy(&entry.name).unwrap()).unwrap();
        for head in store.runs().unwrap() {
            all.push(shown(store.load(&head.id).unwrap()));
        }
    }
    // The smallest first, in which a change is seen soonest.
    all.sort_by_key(|one| one.run.launches.len());
    let mut leaves: BTreeMap<String, Leaf> = BTreeMap::new();
    for (which, one) in all.iter().enumerate() {
        walk(&one.launches, "launch", "", &mut |name, pointer, value| {
            let leaf = leaves.entry(name.to_owned()).or_default();
            leaf.places.push((which, pointer.to_owned()));
            if leaf.values.len() < 20 {
                leaf.values.insert(value.to_string());
            }
        });
    }
    let unread = leaves.iter().filter(|(_, leaf)| !is_read(&mut all, leaf));
    let unread: BTreeSet<&str> = unread.map(|(name, _)| name.as_str()).collect();
    println!(
        "{} leaves, of which {} are not read",
        leaves.len(),
        unread.len()
    );
    let listed: BTreeSet<&str> = UNREAD.iter().map(|(name, _)| *name).collect();
    assert_eq!(
        unread, listed,
        "what nothing reads has to be shown, or listed with a reason"
    );
    assert!(
        unread.len() * 10 <= leaves.len(),
        "{} of {}",
        unread.len(),
        leaves.len()
    );
}
