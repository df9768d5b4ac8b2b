//! What the models say beforehand: the figures that a bench holds its measurements against.
//!
//! Model:   by the network's selector: `tcp-expected`, what the virtual clock reaches with a kernel-like sender (in so many `seconds`
//!          after a first one, where they are said); `tcp-max`, the bound of the headers alone; `udp-max`, the same for datagrams of so many
//!          `bytes`; `one-way`, the time of a packet of so many `bytes` in an idle network; `first-one-way`, that of the first packet.
//! Units:   bits of user data a second; nanoseconds.
//! Checked: `models_have_figures`.

use anyhow::{Context, Result, anyhow, bail};
use sonde_link::{Headers, tcp_max, udp_max};
use sonde_units::{Bytes, Span};
use sonde_virtual::{Sender, first_one_way, one_way, tcp_expected, tcp_expected_over};

/// The kinds of them.
pub const KINDS: [&str; 5] = [
    "tcp-expected",
    "tcp-max",
    "udp-max",
    "one-way",
    "first-one-way",
];

/// The figure of one kind.
///
/// # Errors
/// A network that does not exist, or one for which there is no such figure.
pub fn figure(kind: &str, network: &str, bytes: &str, seconds: &str) -> Result<f64> {
    let read = |path: &str| std::fs::read_to_string(path).map_err(|error| error.to_string());
    let spec =
        sonde_link::resolve(network, &read).with_context(|| format!("the network {network}"))?;
    let bytes = || bytes.parse().map(Bytes).context("`bytes` is not a number");
    let found = match kind {
        "tcp-expected" if seconds.is_empty() => tcp_expected(&spec, &Sender::modern())
            .map_err(|reason| anyhow!("nothing is expected: {reason:?}"))?,
        "tcp-expected" => {
            let seconds = seconds.parse().context("`seconds` is not a number")?;
            tcp_expected_over(&spec, &Sender::modern(), Span::secs(seconds))
                .map_err(|reason| anyhow!("nothing is expected: {reason:?}"))?
        }
        "tcp-max" => tcp_max(&spec, Headers::Timestamps).context("the network has no rate")?,
        "udp-max" => udp_max(&spec, bytes()?).context("the network has no rate")?,
        "one-way" => one_way(&spec, bytes()?)?.0.as_nanos(),
        "first-one-way" => first_one_way(&spec, bytes()?)?.0.as_nanos(),
        other => bail!("there is no `{other}`; there are {}", KINDS.join(", ")),
    };
    Ok(found as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_have_figures() {
        let of = |kind, network, bytes| figure(kind, network, bytes, "").unwrap();
        let (expected, most) = (
            of("tcp-expected", "ethernet-100", ""),
            of("tcp-max", "ethernet-100", ""),
        );
        assert!(
            expected <= most && expected > 0.99 * most,
            "{expected} {most}"
        );
        assert!(of("udp-max", "ethernet-100", "1400") < 1e8);
        let (first, later) = (
            of("first-one-way", "atm-oc3c:vc=svc", "84"),
            of("one-way", "atm-oc3c:vc=svc", "84"),
        );
        assert!((first - later - 21e6).abs() < 1e5, "{first} {later}");
        assert!(figure("tcp-expected", "ethernet-100", "", "3").is_ok());
        for (kind, network, bytes) in [
            ("x", "wire", ""),
            ("tcp-max", "nowhere", ""),
            ("udp-max", "fddi", ""),
        ] {
            assert!(figure(kind, network, bytes, "").is_err(), "{kind}");
        }
    }
}
