//! The overhead chain: what is left of a line's rate at each layer, and the ceilings of TCP and UDP.
//!
//! Model:   a stream of full frames of one station. Each step's rate is the bytes that it leaves of a frame, divided by the time
//!          from that frame to the station's next: for which it holds the line, and on a segment the turnaround behind it.
//!          Acknowledgements are not counted, but by [`tcp_with_acks`].
//! Source:  RFC 791 §3.1 (20 bytes), RFC 9293 §3.1 (20 bytes), RFC 7323 §3.2 and appendix A (12 bytes with padding),
//!          RFC 768 (8 bytes).
//! Units:   bits a second, rounded down.
//! Checked: `oc3c_leaves_what_the_standard_says`, `ethernet_leaves_94_15`, `acknowledgements_share_a_medium`,
//!          `a_turnaround_is_a_step`.

use crate::{CELL_PAYLOAD, CELL_WIRE, Framing, NetworkSpec};
use serde::Serialize;
use sonde_units::{Bytes, Ratio, Span};

const IP_HEADER: u64 = 20;
const TCP_HEADER: u64 = 20;
const UDP_HEADER: u64 = 8;
const TIMESTAMPS: u64 = 12;

/// Which headers a TCP segment has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Headers {
    /// No options.
    Plain,
    /// With the time-stamp option in each segment.
    Timestamps,
}

impl Headers {
    /// User bytes in a full segment at `mtu`.
    pub fn segment(self, mtu: Bytes) -> Bytes {
        let options = match self {
            Self::Plain => 0,
            Self::Timestamps => TIMESTAMPS,
        };
        mtu.saturating_sub(Bytes(IP_HEADER + TCP_HEADER + options))
    }
}

/// What is left after one step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChainStep {
    /// The step: `line`, `sonet`, `mapping` or `payload`, `adapter`, `turnaround`, `framing` or `cell` and `aal5`, `ip`, `tcp`.
    pub step: &'static str,
    /// Bits a second that are left.
    pub bps: u64,
    /// Bytes of one full frame that are left.
    pub bytes: u64,
}

/// What a station of a segment lets pass between a frame of its own and the next, beyond the gap.
fn turnaround(spec: &NetworkSpec) -> Span {
    spec.bus.as_ref().map_or(Span::ZERO, |bus| bus.turnaround)
}

/// Bits a second of `bytes` in each frame of `len` layer-3 bytes that one station sends without a pause; none without a rate.
fn share(spec: &NetworkSpec, len: Bytes, bytes: u64) -> Option<u64> {
    spec.line.rate?;
    let time = (spec.frame_time(len) + turnaround(spec)).as_picos();
    Some((u128::from(bytes) * 8_000_000_000_000 / u128::from(time)) as u64)
}

/// The highest rate of user bytes over TCP, in bits a second; none on a network without a rate.
pub fn tcp_max(spec: &NetworkSpec, headers: Headers) -> Option<u64> {
    let mtu = Bytes(spec.mtu);
    share(spec, mtu, headers.segment(mtu).0)
}

/// The same where both directions share one medium, as on a segment or a ring, so that acknowledgements take their time from
/// it: one without data for every two full segments, which its station sends while the other turns round. What contention
/// for the medium and the signal's way cost is not counted. Elsewhere it is [`tcp_max`].
pub fn tcp_with_acks(spec: &NetworkSpec, headers: Headers) -> Option<u64> {
    if spec.bus.is_none() && spec.token.is_none() {
        return tcp_max(spec, headers);
    }
    spec.line.rate?;
    let (mtu, segment) = (Bytes(spec.mtu), headers.segment(Bytes(spec.mtu)));
    let ack = spec.frame_time(mtu.saturating_sub(segment));
    let time = (spec.frame_time(mtu) * 2 + turnaround(spec) + ack).as_picos();
    Some((u128::from(segment.0) * 16_000_000_000_000 / u128::from(time)) as u64)
}

/// The highest rate of user bytes over UDP in datagrams of `payload` bytes (at most one frame each).
pub fn udp_max(spec: &NetworkSpec, payload: Bytes) -> Option<u64> {
    share(spec, payload + Bytes(IP_HEADER + UDP_HEADER), payload.0)
}

/// From the nominal rate to TCP; empty on a network without a rate.
pub fn overhead(spec: &NetworkSpec, headers: Headers) -> Vec<ChainStep> {
    let (Some(rate), Some(usable)) = (spec.line.rate, spec.line.usable()) else {
        return Vec::new();
    };
    let mtu = Bytes(spec.mtu);
    let framing = spec.line.framing();
    let wire = framing.wire(mtu).0;
    let mut chain = vec![ChainStep {
        step: "line",
        bps: rate.bps(),
        bytes: wire,
    }];
    if usable != rate {
        // 260 of 270 columns at any rate of the hierarchy; other lines map cells in their own ways.
        let is_sonet = spec.line.payload == Ratio::new(26, 27);
        chain.push(ChainStep {
            step: match framing {
                Framing::Atm(_) if is_sonet => "sonet",
                Framing::Atm(_) => "mapping",
                _ => "payload",
            },
            bps: usable.bps(),
            bytes: wire,
        });
    }
    let adapter = spec.credit.as_ref().and_then(|credit| credit.adapter_rate);
    if let Some(adapter) = adapter.filter(|adapter| *adapter < usable) {
        chain.push(ChainStep {
            step: "adapter",
            bps: adapter.bps(),
            bytes: wire,
        });
    }
    let mut left = |step, bytes| {
        if let Some(bps) = share(spec, mtu, bytes) {
            chain.push(ChainStep { step, bps, bytes });
        }
    };
    if !turnaround(spec).is_zero() {
        left("turnaround", wire);
    }
    match framing {
        Framing::Atm(_) => {
            left("cell", wire / CELL_WIRE.0 * CELL_PAYLOAD.0);
            left("aal5", mtu.0);
        }
        _ => left("framing", mtu.0),
    }
    left("ip", mtu.0 - IP_HEADER);
    left("tcp", headers.segment(mtu).0);
    chain
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{named, resolve};

    fn turned(selector: &str) -> NetworkSpec {
        resolve(selector, &|_| unreachable!()).unwrap()
    }

    fn mbit(bps: Option<u64>) -> String {
        format!("{:.3}", bps.unwrap() as f64 / 1e6)
    }

    /// 155.52 -> 149.76 -> 135.63 -> 134.51: Sandia 1996, table 1, with the standard SONET payload.
    #[test]
    fn oc3c_leaves_what_the_standard_says() {
        let spec = named("atm-oc3c").unwrap();
        let chain = overhead(&spec, Headers::Plain);
        let steps: Vec<_> = chain
            .iter()
            .map(|s| (s.step, s.bps / 10_000, s.bytes))
            .collect();
        assert_eq!(
            steps,
            [
                ("line", 15_552, 10_176),
                ("sonet", 14_976, 10_176),
                ("cell", 13_563, 9_216),
                ("aal5", 13_510, 9_180),
                ("ip", 13_480, 9_160),
                ("tcp", 13_451, 9_140),
            ]
        );
        assert_eq!(mbit(tcp_max(&spec, Headers::Timestamps)), "134.337");
    }

    #[test]
    fn ethernet_leaves_94_15() {
        let spec = named("ethernet-100").unwrap();
        assert_eq!(mbit(tcp_max(&spec, Headers::Timestamps)), "94.148");
        assert_eq!(mbit(tcp_max(&spec, Headers::Plain)), "94.928");
        assert_eq!(mbit(udp_max(&spec, Bytes(1_472))), "95.709");
    }

    /// Two segments and an acknowledgement: of 2896 user bytes in 2 x 1538 + 90 (and 2 us), of 8600 in 2 x 4388 + 88.
    #[test]
    fn acknowledgements_share_a_medium() {
        for (selector, headers, want) in [
            ("ethernet-10", Headers::Timestamps, "9.140"),
            ("ethernet-10", Headers::Plain, "9.233"),
            ("ethernet-10:turnaround=0s", Headers::Timestamps, "9.147"),
            ("ethernet-10:turnaround=0s", Headers::Plain, "9.241"),
            ("fddi", Headers::Timestamps, "97.022"),
            ("ethernet-100", Headers::Timestamps, "94.148"),
        ] {
            assert_eq!(mbit(tcp_with_acks(&turned(selector), headers)), want);
        }
    }

    /// A station's full frames are 1230.4 us apart by the standard's MAC, 1232.4 us with the turnaround; its smallest 67.2
    /// and 69.2.
    #[test]
    fn a_turnaround_is_a_step() {
        for (selector, tcp, plain, large, small) in [
            ("ethernet-10", "9.400", "9.477", "9.555", "0.116"),
            (
                "ethernet-10:turnaround=0s",
                "9.415",
                "9.493",
                "9.571",
                "0.119",
            ),
        ] {
            let spec = turned(selector);
            assert_eq!(mbit(tcp_max(&spec, Headers::Timestamps)), tcp);
            assert_eq!(mbit(tcp_max(&spec, Headers::Plain)), plain);
            assert_eq!(mbit(udp_max(&spec, Bytes(1_472))), large);
            assert_eq!(mbit(udp_max(&spec, Bytes(1))), small);
        }
        let steps = |selector: &str| -> Vec<_> {
            let chain = overhead(&turned(selector), Headers::Timestamps);
            chain
                .iter()
                .map(|step| (step.step, mbit(Some(step.bps)), step.bytes))
                .collect()
        };
        let step = |name, bps: &str, bytes| (name, bps.to_owned(), bytes);
        assert_eq!(
            steps("ethernet-10"),
            [
                step("line", "10.000", 1_538),
                step("turnaround", "9.984", 1_538),
                step("framing", "9.737", 1_500),
                step("ip", "9.607", 1_480),
                step("tcp", "9.400", 1_448),
            ]
        );
        let standard = steps("ethernet-10:turnaround=0s");
        assert_eq!(standard.len(), 4);
        assert_eq!(standard[1], step("framing", "9.753", 1_500));
    }

    #[test]
    fn a_wire_has_no_ceiling() {
        let spec = named("wire").unwrap();
        assert_eq!(tcp_max(&spec, Headers::Plain), None);
        assert!(overhead(&spec, Headers::Plain).is_empty());
    }

    /// Every MTU of the published table at OC-3c: peers' segment payloads over 149.76 Mb/s of cells.
    #[test]
    fn the_chain_follows_the_mtu() {
        for (mtu, want) in [
            (552, "120.6"),
            (1_500, "128.9"),
            (4_352, "133.9"),
            (9_180, "134.5"),
        ] {
            let mut spec = named("atm-oc3c").unwrap();
            spec.mtu = mtu;
            assert_eq!(
                format!(
                    "{:.1}",
                    tcp_max(&spec, Headers::Plain).unwrap() as f64 / 1e6
                ),
                want,
                "{mtu}"
            );
        }
    }
}
