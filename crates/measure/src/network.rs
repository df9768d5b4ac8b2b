//! One network of the catalogue, as `sonde lab list --json` prints it.
//!
//! Units:   bits a second, rounded down; bytes; nanoseconds, rounded up.
//! Checked: `a_network_has_the_fields_of_the_contract`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What remains after one step of framing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OverheadStep {
    /// What the step is, for example `cell`.
    pub step: String,
    /// The rate that is left for what it carries.
    pub bps: u64,
    /// Bytes that are left of one full-sized frame.
    pub bytes: u64,
}

/// A network technology with its ceilings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetworkRow {
    /// The name that `--network` takes.
    pub name: String,
    /// The family: `ethernet`, `atm`, `wan`.
    pub technology: String,
    /// One sentence about it.
    pub summary: Option<String>,
    /// How its hosts are joined, for example `star`.
    pub topology: Option<String>,
    /// The largest IP packet.
    pub mtu_bytes: u64,
    /// The nominal rate of the line; null on a network without one.
    pub line_bps: Option<u64>,
    /// The upper bound for a stream with the profile's headers, without acknowledgements; null without a rate.
    pub tcp_max_bps: Option<u64>,
    /// What the model reaches with a kernel-like sender in the same window; null where it was not worked out.
    pub tcp_expected_bps: Option<u64>,
    /// The model's time for one byte of user data from host to host.
    pub one_way_1b_ns: Option<u64>,
    /// From the line rate down to user bytes.
    pub overhead: Vec<OverheadStep>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_the_fields_of_the_contract() {
        let row = NetworkRow {
            name: "ethernet-100".into(),
            technology: "ethernet".into(),
            summary: None,
            topology: Some("star".into()),
            mtu_bytes: 1_500,
            line_bps: Some(100_000_000),
            tcp_max_bps: Some(94_148_000),
            tcp_expected_bps: None,
            one_way_1b_ns: None,
            overhead: vec![OverheadStep {
                step: "ip".into(),
                bps: 96_228_000,
                bytes: 1_480,
            }],
        };
        let value = serde_json::to_value(&row).unwrap();
        for name in "name technology mtu_bytes line_bps tcp_max_bps tcp_expected_bps overhead summary topology one_way_1b_ns"
            .split_whitespace()
        {
            assert!(value.get(name).is_some(), "{name}");
        }
        assert!(value["tcp_expected_bps"].is_null());
        assert_eq!(
            value["overhead"][0],
            serde_json::json!({"step": "ip", "bps": 96_228_000, "bytes": 1_480})
        );
        assert_eq!(serde_json::from_value::<NetworkRow>(value).unwrap(), row);
    }
}
