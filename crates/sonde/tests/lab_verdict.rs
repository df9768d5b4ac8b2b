//! The verdict on all pairs of a lab's hosts: planted faults are found and named, each at its host or way.
//!
//! Model:   faults whose sign does not depend on how busy this machine is; all ten, and healthy runs, are
//!          `cargo xtask bench verdict`.

use crate::lab::{Case, Stage, attachments};

const NETWORK: &str = "ethernet-100:rate=20Mbit";

/// What a quick matrix of so many hosts says with these faults.
pub fn verdict_of(hosts: &str, options: &[&str], faults: &[&str]) -> Option<String> {
    let case = attachments().first().copied()?;
    let stage = Stage::new(Case::own(case.attachment));
    let (runs, script) = (stage.path("runs"), stage.path("script"));
    let mut all = vec!["probe", "pattern", "all-pairs", "--quick", "--hosts", hosts];
    all.extend(["--network", NETWORK, "--out", &runs]);
    if !faults.is_empty() {
        let lines: String = faults.iter().map(|fault| format!("0s {fault}\n")).collect();
        std::fs::write(&script, lines).unwrap();
        all.extend(["--script", &script]);
    }
    all.extend(options);
    let output = stage.sonde(&all).limit(240).output();
    assert!(
        [0, 1, 3].contains(&output.code),
        "{}: {}",
        output.code,
        output.err
    );
    Some(output.out)
}

#[test]
fn a_black_hole_is_named() {
    let Some(said) = verdict_of("8", &[], &["mtu h3 1400"]) else {
        return;
    };
    assert!(said.contains("[host-black-hole] h3 is bad"), "{said}");
}

#[test]
fn a_host_that_is_set_otherwise_is_named() {
    let small = "h3: sysctl -w net.ipv4.tcp_rmem='4096 4096 4096'";
    let Some(said) = verdict_of("8", &["--prepare", small], &[]) else {
        return;
    };
    assert!(
        said.contains("[host-odd] h3") && said.contains("tcp_rmem is 4096"),
        "{said}"
    );
}
