//! Lists of a fixed length in what people write.
//!
//! Checked: `two_are_two`.

use serde::de::{Deserialize, Deserializer, Error};

/// Two values, no fewer and no more: for `#[serde(deserialize_with = "sonde_units::two")]`. A reader of TOML gives an array its first
/// values and passes over the others.
///
/// # Errors
/// The list is longer or shorter.
pub fn two<'de, D: Deserializer<'de>, T: Deserialize<'de>>(input: D) -> Result<[T; 2], D::Error> {
    let all = Vec::<T>::deserialize(input)?;
    let count = all.len();
    all.try_into()
        .map_err(|_| D::Error::custom(format!("two are joined, and {count} are named: write two")))
}

#[cfg(test)]
mod tests {
    #[test]
    fn two_are_two() {
        let read = |text: &str| super::two::<_, u16>(&mut serde_json::Deserializer::from_str(text));
        assert_eq!(read("[0, 1]").unwrap(), [0, 1]);
        for (text, count) in [
            ("[]", "0 are"),
            ("[0]", "1 are"),
            ("[0, 1, 77, 99]", "4 are"),
        ] {
            let refused = read(text).unwrap_err().to_string();
            assert!(refused.contains(count), "{refused}");
        }
    }
}
