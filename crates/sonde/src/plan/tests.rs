//! Tests of [`super`].

use super::usual::BOTH;
use super::*;

fn testbed(kind: Kind) -> TestbedPlan {
    TestbedPlan {
        kind,
        hosts: 4,
        names: kind.is_real().then(|| "2".into()),
        ..TestbedPlan::default()
    }
}

#[test]
fn the_usual_plans_are_read_back() {
    for kind in [
        Kind::Local,
        Kind::Lab,
        Kind::Hosts,
        Kind::Slurm,
        Kind::Mpirun,
        Kind::Listen,
    ] {
        for effort in [Effort::Quick, Effort::Usual, Effort::Thorough] {
            let plan = Plan::assess(testbed(kind), effort);
            assert_eq!(Plan::parse(&plan.text().unwrap()).unwrap(), plan);
        }
    }
}

#[test]
fn networks_of_real_hosts_are_interfaces() {
    let mut plan = Plan::assess(testbed(Kind::Hosts), Effort::Quick);
    plan.networks = ["eth=eth0", "ib=a/ib0,b/ib1", "san=10.9.1.0/24"]
        .map(|text| NetworkPlan::of(Kind::Hosts, text))
        .to_vec();
    plan.loads = vec![LoadPlan::level("0.6:of=1Gbit:flow=a>b")];
    plan.check().unwrap();
    assert_eq!(Plan::parse(&plan.text().unwrap()).unwrap(), plan);
    assert_eq!(plan.networks[1].interface.as_deref(), Some("a/ib0,b/ib1"));
    plan.networks[0] = NetworkPlan::of(Kind::Hosts, "eth0");
    assert!(
        plan.check()
            .unwrap_err()
            .to_string()
            .contains("NAME=INTERFACE")
    );
    let mut lab = Plan::assess(testbed(Kind::Lab), Effort::Quick);
    // Knobs have a `=` of their own.
    assert_eq!(
        NetworkPlan::of(Kind::Lab, "wire:delay=1ms").name,
        "wire:delay=1ms"
    );
    lab.loads.clone_from(&plan.loads);
    assert!(
        lab.check()
            .unwrap_err()
            .to_string()
            .contains("`of` and `flow`")
    );
    lab.loads.clear();
    lab.networks[0].interface = Some("eth0".into());
    assert!(
        lab.check()
            .unwrap_err()
            .to_string()
            .contains("no `interface`")
    );
    let mut local = Plan::assess(testbed(Kind::Local), Effort::Quick);
    local.networks = plan.networks;
    assert!(local.check().unwrap_err().to_string().contains("loopback"));
}

#[test]
fn an_assessment_of_three_hosts_begins_with_all_pairs() {
    let of = |testbed: TestbedPlan, paths: &[AnyPath]| {
        let effort = Effort::Usual;
        let plan = Plan::assess(testbed, effort).assessing_all_pairs(true, paths);
        assert_eq!(Plan::parse(&plan.text().unwrap()).unwrap(), plan);
        plan.check().unwrap();
        plan.probes.into_iter().next().unwrap()
    };
    let real = |names: &str| TestbedPlan {
        names: Some(names.into()),
        ..testbed(Kind::Hosts)
    };
    let lab = |hosts: u16| TestbedPlan {
        hosts,
        ..testbed(Kind::Lab)
    };
    let first = of(real("a,b,c"), &[]);
    assert_eq!(first.kind, ProbeKind::Pattern);
    assert_eq!((first.launches, first.networks.len()), (Some(1), 0));
    let flows = first.flows.unwrap();
    assert!(flows.quick && flows.pattern == "all-pairs");
    let emulated = of(lab(4), &[]);
    assert_eq!(emulated.networks, ["ethernet-100"]);
    // Two hosts are one pair; of one machine there is none.
    for few in [real("a,b"), lab(2), testbed(Kind::Local)] {
        assert_ne!(of(few, &[]).kind, ProbeKind::Pattern);
    }
    // What was asked for is another path alone, or a network under load.
    assert_ne!(of(lab(4), &[AnyPath::UDP]).kind, ProbeKind::Pattern);
    assert_eq!(of(lab(4), &BOTH).kind, ProbeKind::Pattern);
    let mut loaded = Plan::assess(lab(4), Effort::Usual);
    loaded.loads = vec![LoadPlan::level("0.6")];
    let loaded = loaded.assessing_all_pairs(true, &[]);
    assert_ne!(loaded.probes[0].kind, ProbeKind::Pattern);
    // Of networks that are named the first, where none is known to be slow enough for the emulation.
    let mut named = Plan::assess(lab(4), Effort::Usual);
    named.networks = ["fddi", "wire"].map(NetworkPlan::lab).to_vec();
    let named = named.assessing_all_pairs(true, &[]);
    assert_eq!(named.probes[0].networks, ["fddi"]);
}

#[test]
fn sizes_expand() {
    let mut probe = ProbePlan::new(ProbeKind::Latency, &BOTH, &["1..8", "1KiB", "mtu"]);
    let sizes = |probe: &ProbePlan, path| probe.sizes(path, Some(1_448)).unwrap();
    assert_eq!(
        sizes(&probe, AnyPath::TCP),
        [1, 2, 4, 8, 1_024, 1_448, 1_449]
    );
    probe.size = vec!["1000..2000".into(), "1MiB".into()];
    assert_eq!(
        sizes(&probe, AnyPath::TCP),
        [1_000, 1_024, 1_448, 1_449, 2_000, 1 << 20]
    );
    assert_eq!(
        sizes(&probe, AnyPath::UDP),
        [1_000, 1_024, 1_448, 1_449, 2_000]
    );
    assert_eq!(
        probe.sizes(AnyPath::UDP, None).unwrap(),
        [1_000, 1_024, 2_000]
    );
    for wrong in ["0", "2GiB", "8..1", "many", "..", "1.5"] {
        probe.size = vec![wrong.into()];
        let said = probe.sizes(AnyPath::TCP, None).unwrap_err().to_string();
        assert!(said.contains('`'), "{wrong}: {said}");
    }
}

#[test]
fn wrong_plans_are_refused_with_their_place() {
    let good = Plan::assess(testbed(Kind::Lab), Effort::Usual)
        .text()
        .unwrap();
    for (from, to, said) in [
        ("kind = \"lab\"", "kind = \"moon\"", "line 2"),
        ("hosts = 4", "hots = 4", "hots"),
        ("launches = 6", "launches = 0", "0 to 6 repetitions"),
        ("size = [\"8\"]", "size = [\"8 furlongs\"]", "8 furlongs"),
        ("path = [\"tcp\"", "path = [\"tpc\"", "tpc"),
        (
            "kind = \"startup\"",
            "kind = \"startup\"\nlost = \"0.1%\"",
            "`lost` bounds",
        ),
        (
            "kind = \"startup\"",
            "kind = \"startup\"\nlost = \"120%\"",
            "not a share",
        ),
        (
            "kind = \"startup\"",
            "kind = \"startup\"\nmode = \"stream\"",
            "mode",
        ),
        ("name = \"modern\"", "name = \"old\"", "era:window"),
        ("seed = 1", "sed = 1", "sed"),
    ] {
        assert!(good.contains(from), "{from} is not in\n{good}");
        let text = good.replacen(from, to, 1);
        let error = Plan::parse(&text).expect_err(to).to_string();
        assert!(error.contains(said), "{to}: {error}");
    }
    let nothing = "[testbed]\nkind = \"lab\"\nprobe = []\n";
    assert!(Plan::parse(nothing).is_err(), "a plan of nothing");
}

#[test]
fn kernels_are_of_libraries_and_ranks() {
    let good = "[testbed]\nkind = \"local\"\n[[probe]]\nkind = \"npb\"\npath = [\"native:shm\", \"pvm\"]\n\
        [probe.with]\nkernel = [\"cg\", \"lu\"]\nclass = [\"S\"]\nranks = [\"4\", \"6\"]\n";
    // On 6 ranks cg is left out and lu is not.
    let plan = Plan::parse(good).unwrap();
    assert_eq!(plan.probes[0].settings().len(), 4);
    assert_eq!(Plan::parse(&plan.text().unwrap()).unwrap(), plan);
    for (from, to, said) in [
        ("\"native:shm\"", "\"tcp\"", "tcp has no ranks"),
        ("[\"4\", \"6\"]", "[\"3\", \"5\"]", "cg S on 3"),
        ("class = [\"S\"]", "class = [\"D\"]", "parameters alone"),
        ("class = [\"S\"]\n", "", "either `class`"),
        ("kernel = [\"cg\"", "kernel = [\"dg\"", "ep, cg"),
        (
            "kind = \"npb\"",
            "kind = \"npb\"\nsize = [\"8\"]",
            "remove `size`",
        ),
    ] {
        assert!(good.contains(from), "{from} is not in\n{good}");
        let error = Plan::parse(&good.replacen(from, to, 1)).expect_err(to);
        assert!(error.to_string().contains(said), "{to}: {error}");
    }
}

#[test]
fn messages_are_of_libraries_and_statistics() {
    let good = "[testbed]\nkind = \"local\"\n[[probe]]\nkind = \"messages\"\npath = [\"native:shm\", \"pvm\"]\n\
        [probe.with]\nof = [\"upc:cg\", \"upc:mg\"]\nranks = [\"4\"]\n";
    let plan = Plan::parse(good).unwrap();
    assert_eq!(plan.probes[0].settings().len(), 2);
    assert_eq!(Plan::parse(&plan.text().unwrap()).unwrap(), plan);
    for (from, to, said) in [
        ("\"native:shm\"", "\"tcp\"", "tcp has no ranks"),
        ("[\"4\"]", "[\"4\", \"1\"]", "2 to"),
        ("\"upc:mg\"", "\"upc:ep\"", "hardly communicates"),
        ("ranks = [\"4\"]", "count = [\"0\"]", "1 message or more"),
        (
            "kind = \"messages\"",
            "kind = \"messages\"\nsize = [\"8\"]",
            "remove `size`",
        ),
    ] {
        assert!(good.contains(from), "{from} is not in\n{good}");
        let error = Plan::parse(&good.replacen(from, to, 1)).expect_err(to);
        assert!(error.to_string().contains(said), "{to}: {error}");
    }
}

#[test]
fn plans_of_papers_are_read() {
    let root = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let files = std::fs::read_dir(root.join("plans/papers")).unwrap();
    let paths = files.map(|file| file.unwrap().path());
    // What the papers ask for, and the ledger of what is shown of it, lie beside them.
    let plans: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|of| of == "toml"))
        .filter(|path| !path.ends_with("coverage.toml"))
        .collect();
    assert!(plans.len() >= 4, "{plans:?}");
    for path in plans {
        let plan = Plan::read(&path).unwrap_or_else(|error| panic!("{error}"));
        for network in &plan.networks {
            let read = |path: &str| {
                std::fs::read_to_string(root.join(path)).map_err(|error| error.to_string())
            };
            match network.site {
                true => drop(sonde_link::resolve_site(&network.name, &read).unwrap()),
                false => drop(sonde_link::resolve(&network.name, &read).unwrap()),
            }
        }
    }
}
