//! Texts of loads, laws, limits and amounts.

use sonde_fleet::Load;
use sonde_link::{Law, Limit};
use sonde_units::{BitRate, Bytes, Ratio, Span};

pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Ok(load) = text.parse::<Load>() {
        let shown = load.to_string();
        assert_eq!(
            shown.parse::<Load>().ok().map(|load| load.to_string()),
            Some(shown)
        );
    }
    let _ = text.parse::<Law>();
    let _ = text.parse::<Limit>();
    if let Ok(ratio) = text.parse::<Ratio>() {
        assert_eq!(ratio.to_string().parse(), Ok(ratio));
    }
    same::<BitRate>(text);
    same::<Bytes>(text);
    same::<Span>(text);
}

/// What was read is written so that it is read again.
fn same<T: std::str::FromStr<Err: std::fmt::Debug> + ToString + PartialEq + std::fmt::Debug>(
    text: &str,
) {
    if let Ok(value) = text.parse::<T>() {
        assert_eq!(
            value
                .to_string()
                .parse::<T>()
                .expect("it was written by us"),
            value
        );
    }
}
