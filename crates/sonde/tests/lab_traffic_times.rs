//! The set-up of a switched circuit, as `ping` sees it.

use crate::lab::{Stage, cases, has, report, spread};
use crate::paired::lab_traffic::{lost_nothing, times};
use sonde_sys::noise::measured;

#[test]
fn a_switched_circuit_costs_its_setup_once() {
    measured(|| {
        if !has("ping") {
            return;
        }
        for (case, ()) in spread(&cases(), &[()]) {
            let ping = |network: &str, script: &str| {
                let stage = Stage::new(case);
                let written = stage.path("report");
                let options = ["--hosts", "2", "--network", network, "--report", &written];
                let outcome = stage.run(&options, &["sh", "-c", script]).expect(0);
                let report = report(&written);
                lost_nothing(&report);
                (times(&outcome), report["circuit_setups"].as_u64().unwrap())
            };
            let thrice = "ping -c 3 -i 0.3 h2";
            let (switched, setups) = ping("atm-oc3c:vc=svc:setup=100ms", thrice);
            println!("{case:?}: switched {switched:?} us, {setups} set up");
            assert!(
                switched[0] - switched[1] > 95_000 && switched[2] < 50_000 && setups == 1,
                "{switched:?} {setups}"
            );
            assert!(switched[0] < 400_000, "{switched:?}");
            let (permanent, setups) = ping("atm-oc3c:setup=100ms", thrice);
            assert!(
                permanent[0] < 50_000 && setups == 0,
                "{permanent:?} {setups}"
            );

            // Unused for longer than it is kept, a circuit is set up again.
            let again = "ping -c 2 -i 0.2 h2; sleep 1.5; ping -c 2 -i 0.2 h2";
            let (released, setups) = ping("atm-oc3c:vc=svc:setup=100ms:idle_release=1s", again);
            println!("{case:?}: released {released:?} us, {setups} set up");
            assert!(released[0] > 95_000 && released[1] < 50_000, "{released:?}");
            assert!(
                released[2] > 95_000 && released[3] < 50_000 && setups == 2,
                "{released:?} {setups}"
            );
            let (kept, setups) = ping("atm-oc3c:vc=svc:setup=100ms:idle_release=60s", again);
            assert!(kept[2] < 50_000 && setups == 1, "{kept:?} {setups}");
        }
    });
}
