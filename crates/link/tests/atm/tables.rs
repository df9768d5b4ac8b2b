//! The tables of an ATM network: what is refused and why, and the examples.

use super::rig::Rig;
use sonde_link::{CatalogueError, Command, Discard, Fault, Network, parse, resolve};
use sonde_units::{BitRate, Instant, Span};

fn complaint(selector: &str, tables: &str) -> String {
    let base = resolve("atm-oc3c", &|_| unreachable!()).expect("it is in the catalogue");
    let mut text = toml::Table::try_from(&base).expect("it was read");
    text.extend(toml::from_str::<toml::Table>(tables).expect(tables));
    let read = |_: &str| Ok(text.to_string());
    let path = format!("./my.toml{selector}");
    match resolve(&path, &read) {
        Err(error @ (CatalogueError::Value { .. } | CatalogueError::Parse { .. })) => {
            error.to_string()
        }
        Err(error @ CatalogueError::Knob { .. }) => error.to_string(),
        other => panic!("{tables}: {other:?}"),
    }
}

#[test]
fn wrong_values_say_what_would_be_right() {
    let contract = |text: &str| format!("[[atm.contract]]\nclass = 1\n{text}");
    for (tables, says) in [
        ("[atm]\nthreshold = 13313", "1 to 13312"),
        ("[atm]\nmodule = 0", "1 to 1024 ports"),
        ("[atm]\ncell_loss = \"2\"", "a probability is at most 1"),
        ("[atm]\npcr = \"150Mbit\"", "149.76Mbit"),
        ("[atm]\npcr = \"1bit\"", "less than one cell per second"),
        ("[atm]\ndiscard = \"late\"", "`tail`"),
        ("[lane]\nunknown_rate = 1", "encapsulation = \"lane\""),
        ("[[pvc]]\nbetween = [1, 1]", "joins station 1 with itself"),
        (&contract("category = \"cbr\""), "no `pcr`"),
        (
            &contract("category = \"rt-vbr\"\npcr = \"1Mbit\""),
            "`scr` and `mbs`",
        ),
        (
            &contract("category = \"ubr\"\nmcr = \"1Mbit\""),
            "only abr has",
        ),
        (
            &contract("category = \"nrt-vbr\"\npcr = \"1Mbit\"\nscr = \"2Mbit\"\nmbs = 9"),
            "above `pcr`",
        ),
        (
            &contract("category = \"nrt-vbr\"\npcr = \"2Mbit\"\nscr = \"1Mbit\"\nmbs = 0"),
            "1 to 1000000",
        ),
        (&contract("category = \"abr\"\nrif = \"0\""), "above 0"),
        (
            &contract("category = \"cbr\"\npcr = \"1Mbit\"\ncdvt = \"2s\""),
            "above 1s",
        ),
        (
            &format!(
                "{}\n{}",
                contract("category = \"ubr\""),
                contract("category = \"ubr\"")
            ),
            "class 1 twice",
        ),
    ] {
        let told = complaint("", tables);
        assert!(told.contains(says), "{tables}: {told}");
    }
    let told = complaint(":encapsulation=lane:mtu=20000:queue=64KiB", "");
    assert!(told.contains("18174"), "{told}");
    let told = resolve("ethernet-100:pcr=1Mbit", &|_| unreachable!()).expect_err("no cells");
    assert!(told.to_string().contains("no [atm]"), "{told}");
}

#[test]
fn knobs_reach_the_cells() {
    let spec = resolve(
        "atm-oc3c:discard=epd:threshold=9:pcr=1Mbit",
        &|_| unreachable!(),
    );
    let traffic = spec.expect("they fit").atm.expect("the table is made");
    assert_eq!(
        (traffic.discard, traffic.threshold),
        (Discard::Epd, Some(9))
    );
    assert_eq!(traffic.pcr, Some(BitRate::mbit(1)));
}

#[test]
fn the_examples_carry_frames() {
    for (name, ports) in [("atm", 8u16), ("atm-two-switches", 6)] {
        let path = format!(
            "{}/../../plans/examples/networks/{name}.toml",
            env!("CARGO_MANIFEST_DIR")
        );
        let text = std::fs::read_to_string(&path).expect(&path);
        let spec = parse(&path, &text).unwrap_or_else(|error| panic!("{error}"));
        let mut rig = Rig::new(&spec, ports, 1);
        rig.pass(Span::secs(1));
        let ids: Vec<_> = (1..ports).map(|to| (to, rig.send(0, to, 1_500))).collect();
        rig.settle();
        for (to, id) in ids {
            rig.arrival(id, to);
        }
    }
}

/// The lines take another rate from the next cells on, and their own again.
#[test]
fn lines_change_their_rate() {
    for every_cell in [false, true] {
        let mut rig = Rig::of("atm-oc3c", &format!("[atm]\nevery_cell = {every_cell}"), 2);
        let mut took = |rate: Option<BitRate>| {
            rig.command(Command::Fault(Fault::Rate { rate }))
                .expect("it can be");
            let (at, id) = (rig.now, rig.send(0, 1, 9_180));
            rig.settle();
            rig.arrival(id, 1).since(at)
        };
        let fixed = Span::nanos(2 * 140) + Span::micros(10);
        let own = Span::picos(2_831_197) * 193 + fixed;
        assert_eq!(took(None), own);
        // A fifth of the rate: 29.952 Mb/s of cells.
        let slow = Span::picos(14_155_983) * 193 + fixed;
        assert_eq!(took(BitRate::new(31_104_000)), slow);
        assert_eq!(took(None), own);
        assert!(rig.now > Instant::START);
        assert_eq!(rig.network.counters().lost_total(), 0);
    }
}
