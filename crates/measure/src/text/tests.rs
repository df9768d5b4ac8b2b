//! Values as JSON and as texts.

use super::*;
use crate::fixed::Shares;

fn comes_back<T: Text + PartialEq + std::fmt::Debug>(text: &str, value: T) {
    assert_eq!(T::read(text), Some(value));
    assert_eq!(T::read(text).unwrap().write(), text);
}

#[test]
fn values_come_back() {
    comes_back(
        "0.250 0.500 0.250",
        Shares(vec![Fixed(250), Fixed(500), Fixed(250)]),
    );
    let buffer = |asked_bytes, granted_bytes| Buffer {
        asked_bytes,
        granted_bytes,
    };
    comes_back("100 (the kernel's)", buffer(None, 100));
    comes_back("100 (asked for 200)", buffer(Some(200), 100));
    comes_back("100", buffer(Some(100), 100));
    let change = HostChange {
        before: "4096 131072 6291456".into(),
        asked: "64KiB".into(),
        after: "4096 65536 65536".into(),
    };
    comes_back(
        "4096 65536 65536 (asked for 64KiB, was 4096 131072 6291456)",
        change,
    );
    comes_back(
        "the kernel had no room for 73 % of the time: the way takes no more",
        LoadLimit::NoRoom(Fixed(73)),
    );
    comes_back("h2 is gone", LoadLimit::Failed("h2 is gone".into()));
    comes_back("", Names::<','>(Vec::new()));
}

#[test]
fn other_forms_are_refused() {
    assert_eq!(Fixed::<3>::read("0.25"), None);
    assert_eq!(Fixed::<3>::read("-0.250"), None);
    assert_eq!(
        Fixed::<3>::read(".250").map(|read| read.write()),
        Some("0.250".into())
    );
    assert_eq!(Buffer::read("many"), None);
    assert_eq!(RingShape::read("1 slots of x bytes each way"), None);
    assert_eq!(Placed::read("CPU one: asked for"), None);
}

#[test]
fn json_is_as_it_is_told() {
    fn told<T: Serialize>(value: &T) -> String {
        serde_json::to_string(value).unwrap()
    }
    let free = Buffer {
        asked_bytes: None,
        granted_bytes: 100,
    };
    assert_eq!(told(&free), r#"{"granted_bytes":100}"#);
    assert_eq!(
        told(&LoadLimit::NoRoom(Fixed(73))),
        r#"{"no_room_percent":73.0}"#
    );
    assert_eq!(
        told(&LoadLimit::Failed("gone".into())),
        r#"{"failed":"gone"}"#
    );
    assert_eq!(told(&LongMessages::OneCopy), r#""one_copy""#);
    assert_eq!(told(&Verification::NotPerformed), r#""not_performed""#);
    assert_eq!(told(&XdpMode::Skb), r#""skb""#);
    assert_eq!(told(&Names::<','>(vec!["a b".into()])), r#"["a b"]"#);
}
