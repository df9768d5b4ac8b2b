//! Marks of congestion in place of loss.

use sonde_link::{Port, resolve};
use sonde_units::{Bytes, Span};
use sonde_virtual::{Congestion, Sender, Shared, share};

fn run(selector: &str, sender: &Sender) -> Shared {
    let spec = resolve(selector, &|_| unreachable!()).unwrap();
    let flows: Vec<_> = (1..=4).map(|port| (Port(port), Port(0))).collect();
    share(&spec, &flows, sender, Span::secs(1), 0).unwrap()
}

/// Four streams into one port, whose buffer holds 512 full frames: senders that ask for marks slow down at an eighth of it and
/// lose nothing; those that do not, or a switch that does not mark, lose what finds no room.
#[test]
fn marks_reduce_without_loss() {
    let knobs = ":delay=100us:buffer=512frames";
    let (plain, marked) = (
        format!("ethernet-100{knobs}"),
        format!("ethernet-100{knobs}:mark=64frames"),
    );
    for congestion in [Congestion::Reno, Congestion::Cubic] {
        let deaf = Sender {
            congestion,
            send_buffer: Bytes::mib(1),
            ..Sender::modern()
        };
        let heeding = Sender { ecn: true, ..deaf };
        let lossless = run(&marked, &heeding);
        assert_eq!(
            (lossless.resent, lossless.timeouts),
            (0, 0),
            "{congestion:?}"
        );
        assert!(lossless.counters.lost.is_empty(), "{congestion:?}");
        let sum: u64 = lossless.rates_bps.iter().sum();
        assert!(sum > 93_000_000, "{congestion:?}: {sum}");
        for (selector, sender) in [(&marked, &deaf), (&plain, &heeding)] {
            let result = run(selector, sender);
            assert!(result.resent > 0, "{selector}");
            assert!(!result.counters.lost.is_empty(), "{selector}");
        }
    }
}
