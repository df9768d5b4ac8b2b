//! The identity of a cell: what was measured, whatever the order in which its factors were written.
//!
//! Model:   the first 16 hexadecimal digits of SHA-256 over the canonical JSON of the resolved factors: members sorted by
//!          the bytes of their names, no white space. Arrays keep their order, which means something.
//! Checked: `known_id`, `the_order_of_keys_does_not_matter`, `every_factor_matters`.

use std::fmt::Write;

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Factors that cannot be written as JSON.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot name a cell: its factors are not JSON: {0}; map keys must be text and numbers finite"
)]
pub struct CellError(#[from] serde_json::Error);

/// The id of the cell with these resolved factors: 16 hexadecimal digits.
///
/// # Errors
/// Factors that JSON cannot say, for example maps with keys that are no text.
pub fn cell_id(factors: &impl Serialize) -> Result<String, CellError> {
    let mut canonical = String::new();
    write_canonical(&serde_json::to_value(factors)?, &mut canonical)?;
    let digest = Sha256::digest(canonical.as_bytes());
    let mut id = String::with_capacity(16);
    for byte in &digest[..8] {
        let _ = write!(id, "{byte:02x}"); // Writing to a String cannot fail.
    }
    Ok(id)
}

/// Sorts by hand: `serde_json` keeps insertion order instead as soon as any crate asks for `preserve_order`.
fn write_canonical(value: &Value, out: &mut String) -> Result<(), serde_json::Error> {
    match value {
        Value::Object(members) => {
            let mut names: Vec<_> = members.iter().collect();
            names.sort_unstable_by_key(|(name, _)| *name);
            out.push('{');
            for (index, (name, member)) in names.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&serde_json::to_string(name)?);
                out.push(':');
                write_canonical(member, out)?;
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_canonical(item, out)?;
            }
            out.push(']');
        }
        plain => out.push_str(&serde_json::to_string(plain)?),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn known_id() {
        // printf '{"a":1,"b":[true,null]}' | sha256sum
        assert_eq!(
            cell_id(&json!({"b": [true, null], "a": 1})).unwrap(),
            "1cc69c7fa23616ca"
        );
    }

    #[test]
    fn the_order_of_keys_does_not_matter() {
        #[derive(Serialize)]
        struct Forward {
            network: &'static str,
            size_bytes: u64,
        }
        #[derive(Serialize)]
        struct Backward {
            size_bytes: u64,
            network: &'static str,
        }
        let forward = cell_id(&Forward {
            network: "wire",
            size_bytes: 1,
        })
        .unwrap();
        let backward = cell_id(&Backward {
            size_bytes: 1,
            network: "wire",
        })
        .unwrap();
        assert_eq!(forward, backward);
        assert_ne!(
            cell_id(&json!([1, 2])).unwrap(),
            cell_id(&json!([2, 1])).unwrap()
        );
    }

    #[test]
    fn every_factor_matters() {
        let base = json!({"network": {"name": "atm-oc3c", "mtu_bytes": 9180}, "path": "tcp", "wait": "block",
            "profile": null, "size_bytes": 1, "probe": "latency"});
        let mut ids = BTreeSet::from([cell_id(&base).unwrap()]);
        let members = base.as_object().unwrap().clone();
        for name in members.keys() {
            let mut changed = members.clone();
            changed[name] = json!("other");
            assert!(
                ids.insert(cell_id(&changed).unwrap()),
                "{name} is not in the id"
            );
            changed.remove(name);
            assert!(
                ids.insert(cell_id(&changed).unwrap()),
                "{name} left out is not seen"
            );
        }
        let mut nested = base.clone();
        nested["network"]["mtu_bytes"] = json!(1500);
        assert!(ids.insert(cell_id(&nested).unwrap()));
        // A separator in a text cannot make two factors look like one.
        assert_ne!(
            cell_id(&json!({"a": "1\",\"b\":\"2"})).unwrap(),
            cell_id(&json!({"a": "1", "b": "2"})).unwrap()
        );
    }

    #[test]
    fn what_json_cannot_say_is_refused() {
        let error = cell_id(&BTreeMap::from([((1, 2), 3)])).unwrap_err();
        assert!(error.to_string().contains("cannot name a cell"), "{error}");
    }
}
