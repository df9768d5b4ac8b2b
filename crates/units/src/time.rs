//! Instants and spans in picoseconds; one-way and round-trip times as different types.
//!
//! Units:   picoseconds in `u64`: one byte at 100 Gb/s is 80; the largest span is 213 days. An [`Instant`] counts from
//!          the start of its network, never from the machine's boot.
//! Checked: `spans_parse_and_print`, `a_round_trip_is_two_ways`.

use crate::parse::{self, Grammar, ParseQuantityError};
use std::{fmt, iter::Sum, ops, str::FromStr};

/// A length of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

/// A point in time, counted from the start of a network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

/// The time from one host to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OneWay(pub Span);

/// The time from one host to another and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RoundTrip(pub Span);

/// What is understood; it is printed in seconds and below, from the third on.
const UNITS: &[(&str, u64)] = &[
    ("h", 3_600_000_000_000_000),
    ("min", 60_000_000_000_000),
    ("s", 1_000_000_000_000),
    ("ms", 1_000_000_000),
    ("us", 1_000_000),
    ("ns", 1_000),
    ("ps", 1),
];
const GRAMMAR: Grammar = Grammar {
    what: "a time",
    example: "10ms",
    units: UNITS,
    option,
    option_units: "h, m (minutes), s, ms, us, ns (a number alone is seconds)",
};

fn option(unit: &str) -> Option<u64> {
    let name = match unit {
        "" | "sec" => "s",
        "m" => "min",
        "µs" | "μs" => "us",
        name => name,
    };
    let known = UNITS.iter().find(|(known, _)| *known == name);
    known.map(|(_, worth)| *worth)
}

impl Span {
    /// Reads it as options have it: `5` and `5s`, `2m` and `2min`, `10ms`.
    ///
    /// # Errors
    /// It begins with no number, its unit is none of a time, or it does not fit.
    pub fn of_option(text: &str) -> Result<Self, ParseQuantityError> {
        parse::option(text, &GRAMMAR).map(Self)
    }
    /// No time.
    pub const ZERO: Self = Self(0);
    /// `n` picoseconds.
    pub const fn picos(n: u64) -> Self {
        Self(n)
    }
    /// `n` nanoseconds. Panics beyond 213 days, as all of these do.
    pub const fn nanos(n: u64) -> Self {
        Self(n * 1_000)
    }
    /// `n` microseconds.
    pub const fn micros(n: u64) -> Self {
        Self(n * 1_000_000)
    }
    /// `n` milliseconds.
    pub const fn millis(n: u64) -> Self {
        Self(n * 1_000_000_000)
    }
    /// `n` seconds.
    pub const fn secs(n: u64) -> Self {
        Self(n * 1_000_000_000_000)
    }
    /// Picoseconds.
    pub const fn as_picos(self) -> u64 {
        self.0
    }
    /// Whole nanoseconds, rounded down.
    pub const fn as_nanos(self) -> u64 {
        self.0 / 1_000
    }
    /// The sum, or the longest there is.
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
    /// The difference, or nothing where `other` is longer.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
    /// So many times it, or the longest there is.
    pub const fn saturating_mul(self, n: u64) -> Self {
        Self(self.0.saturating_mul(n))
    }
    /// Whether it is not a time.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl Instant {
    /// The start of the network.
    pub const START: Self = Self(0);
    /// `n` picoseconds after the start.
    pub const fn from_picos(n: u64) -> Self {
        Self(n)
    }
    /// `n` nanoseconds after the start.
    pub const fn from_nanos(n: u64) -> Self {
        Self(n * 1_000)
    }
    /// Picoseconds since the start.
    pub const fn as_picos(self) -> u64 {
        self.0
    }
    /// Whole nanoseconds since the start, rounded down.
    pub const fn as_nanos(self) -> u64 {
        self.0 / 1_000
    }
    /// So much later, or the last time there is.
    pub const fn saturating_add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
    /// The time since `earlier`, or nothing where `earlier` is later.
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl OneWay {
    /// There and back at the same time each way.
    pub fn twice(self) -> RoundTrip {
        RoundTrip(self.0 * 2)
    }
}

impl RoundTrip {
    /// Half of it, which is what is called latency; not the same as a measured one-way time.
    pub fn half(self) -> OneWay {
        OneWay(Span(self.0.0 / 2))
    }
}

impl ops::Add for Span {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl ops::AddAssign for Span {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl ops::Sub for Span {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl ops::Mul<u64> for Span {
    type Output = Self;
    fn mul(self, n: u64) -> Self {
        Self(self.0 * n)
    }
}

impl ops::Div<Self> for Span {
    type Output = u64;
    fn div(self, other: Self) -> u64 {
        self.0 / other.0
    }
}

impl Sum for Span {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, |a, b| a + b)
    }
}

impl ops::Add<Span> for Instant {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self(self.0 + span.0)
    }
}

impl ops::Sub<Span> for Instant {
    type Output = Self;
    fn sub(self, span: Span) -> Self {
        Self(self.0 - span.0)
    }
}

impl FromStr for Span {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse::quantity(text, &GRAMMAR).map(Self)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&if self.0 == 0 {
            "0s".to_owned()
        } else {
            parse::text(self.0, &UNITS[2..])
        })
    }
}

parse::as_text!(Span);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_parse_and_print() {
        assert_eq!("10ms".parse(), Ok(Span::millis(10)));
        assert_eq!("2.831us".parse(), Ok(Span::picos(2_831_000)));
        assert_eq!("0s".parse(), Ok(Span::ZERO));
        assert_eq!("1.5h".parse(), Ok(Span::secs(5_400)));
        assert_eq!("10min".parse::<Span>().unwrap().to_string(), "600s");
        assert_eq!(Span::ZERO.to_string(), "0s");
        assert_eq!(Span::micros(1_500).to_string(), "1.5ms");
        assert!("10".parse::<Span>().is_err());
        assert!("99999999999s".parse::<Span>().is_err());
    }

    #[test]
    fn times_of_options_are_seconds_where_bare() {
        for (text, wanted) in [
            ("5", Span::secs(5)),
            ("0.2", Span::millis(200)),
            ("2m", Span::secs(120)),
            ("2min", Span::secs(120)),
            ("10ms", Span::millis(10)),
            ("7µs", Span::micros(7)),
            ("1h", Span::secs(3_600)),
        ] {
            assert_eq!(Span::of_option(text), Ok(wanted), "{text}");
        }
        for text in ["", "M", "5M", "5 minutes", "-1"] {
            assert!(Span::of_option(text).is_err(), "{text}");
        }
        assert!(
            "2m".parse::<Span>().is_err(),
            "files keep their one spelling"
        );
    }

    #[test]
    fn a_round_trip_is_two_ways() {
        assert_eq!(OneWay(Span::micros(5)).twice(), RoundTrip(Span::micros(10)));
        assert_eq!(
            RoundTrip(Span::micros(11)).half(),
            OneWay(Span::nanos(5_500))
        );
    }
}
