//! Sizes of messages as plans and options write them.
//!
//! Units:   bytes where bare, else with a binary suffix; 1 B to 1 GiB.
//! Checked: `sizes_expand`, `wrong_plans_are_refused_with_their_place`.

use crate::failure::Failure;
use sonde_units::Bytes;
use std::collections::BTreeSet;

/// The size that a text names, in bytes where it is bare.
pub fn size(text: &str) -> Result<u64, Failure> {
    let text = text.trim();
    text.parse::<u64>()
        .or_else(|_| text.parse::<Bytes>().map(|bytes| bytes.0))
        .ok()
        .filter(|size| (1..=1 << 30).contains(size))
        .ok_or_else(|| {
            Failure::usage(format!(
                "`{text}` is not the size of a message: write 1 to 1073741824 bytes, `64KiB`, `1..64KiB` or `mtu`"
            ))
        })
}

/// The same for an option.
///
/// # Errors
/// How sizes are written.
pub fn size_text(text: &str) -> Result<u64, String> {
    size(text).map_err(|failure| failure.to_string())
}

/// Adds the sizes that a text names where one frame carries `frame_payload` user bytes.
///
/// # Errors
/// A text that is not a size.
pub(super) fn expand(
    text: &str,
    frame_payload: Option<u64>,
    sizes: &mut BTreeSet<u64>,
) -> Result<(), Failure> {
    let around = frame_payload.map(|payload| [payload, payload.saturating_add(1)]);
    if text.trim() == "mtu" {
        sizes.extend(around.into_iter().flatten());
        return Ok(());
    }
    let Some((low, high)) = text.split_once("..") else {
        sizes.insert(size(text)?);
        return Ok(());
    };
    let (low, high) = (size(low)?, size(high)?);
    if low > high {
        return Err(Failure::usage(format!(
            "`{text}` is not a range of sizes: its end is below its begin"
        )));
    }
    sizes.extend([low, high]);
    sizes.extend(
        (0..=30)
            .map(|power: u32| 2_u64.pow(power))
            .filter(|size| (low..=high).contains(size)),
    );
    sizes.extend(
        around
            .into_iter()
            .flatten()
            .filter(|size| (low..=high).contains(size)),
    );
    Ok(())
}
