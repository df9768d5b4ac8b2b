//! Whose a knob of a cell is: settings of both hosts, or the channel's.
//!
//! Checked: `plan/tests.rs`, and `layout`'s own.

use crate::failure::Failure;
use sonde_probe::host::{self, Setting};
use std::collections::BTreeMap;

/// The knob of send and receive buffer together.
const BUFFER: &str = "buffer";
/// A knob of hosts and of sockets.
const WINDOW: &str = "window";

/// Settings of hosts, and the knobs that are the channel's.
pub fn apart(
    knobs: &BTreeMap<String, String>,
) -> Result<(Vec<Setting>, BTreeMap<String, String>), Failure> {
    let (mut hosts, mut channel) = (Vec::new(), BTreeMap::new());
    for (name, value) in knobs {
        match host::knob(name, value) {
            Some(settings) => {
                hosts.extend(settings.map_err(Failure::usage)?);
                // The kernel alone does not hold it; the receiver does.
                if name == WINDOW {
                    channel.insert(name.clone(), value.clone());
                }
            }
            // Both ends' socket buffers, as the tests of old had it.
            None if name == BUFFER => {
                for end in ["sndbuf", "rcvbuf"] {
                    if knobs.contains_key(end) {
                        return Err(Failure::usage(format!(
                            "`{BUFFER}` sets {end} too: write one of them"
                        )));
                    }
                    channel.insert(end.into(), value.clone());
                }
            }
            None => drop(channel.insert(name.clone(), value.clone())),
        }
    }
    Ok((hosts, channel))
}
