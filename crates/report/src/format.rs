//! Figures as people read them.
//!
//! Model:   a figure keeps a number of significant digits, whatever its size, so that what is not zero never looks like it.
//!          Times and rates in sentences choose their unit; those in tables have it in the head of their column.
//! Units:   rates are decimal (1 Mb/s is 10⁶), sizes binary where they are whole (64 KiB), else bytes in groups of three.
//! Checked: `nothing_that_is_not_zero_looks_like_it`, `units_are_chosen`, `figures_have_the_unit_of_their_quantity`, `one_is_singular`,
//!          `days_are_counted`.

use sonde_measure::Quantity;

/// A number with so many significant digits; digits before the point are all kept, in groups of three from 10 000 on.
///
/// A number that is not finite is a dash.
pub fn significant(value: f64, digits: u32) -> String {
    if !value.is_finite() {
        return "-".into();
    }
    if value == 0.0 {
        return "0".into();
    }
    let exponent = value.abs().log10().floor() as i32;
    if exponent < -9 {
        return format!("{value:.1e}");
    }
    let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
    let text = format!("{value:.decimals$}");
    let (sign, text) = text
        .strip_prefix('-')
        .map_or(("", text.as_str()), |rest| ("-", rest));
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{}{point}{fraction}", grouped(whole))
}

/// Digits in groups of three from five on, as in `65 535`.
fn grouped(digits: &str) -> String {
    if digits.len() < 5 {
        return digits.into();
    }
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// A count in groups of three.
pub(crate) fn count(value: u64) -> String {
    grouped(&value.to_string())
}

/// A time in the unit that suits it, with four significant digits.
pub fn time(ns: f64) -> String {
    let (unit, scale) = match ns.abs() {
        size if size < 1e3 => ("ns", 1.0),
        size if size < 1e6 => ("µs", 1e3),
        size if size < 1e9 => ("ms", 1e6),
        _ => ("s", 1e9),
    };
    format!("{} {unit}", significant(ns / scale, 4))
}

/// A rate in the unit that suits it, with four significant digits.
pub fn rate(bps: f64) -> String {
    let (unit, scale) = match bps.abs() {
        size if size < 1e3 => ("b/s", 1.0),
        size if size < 1e6 => ("kb/s", 1e3),
        size if size < 1e9 => ("Mb/s", 1e6),
        _ => ("Gb/s", 1e9),
    };
    format!("{} {unit}", significant(bps / scale, 4))
}

/// A size: binary where it is whole, else bytes.
pub fn bytes(size: u64) -> String {
    for (unit, shift) in [("GiB", 30), ("MiB", 20), ("KiB", 10)] {
        if size >> shift > 0 && size % (1 << shift) == 0 {
            return format!("{} {unit}", size >> shift);
        }
    }
    format!("{} B", count(size))
}

/// A share in per cent: a tenth of a per cent where that says something, three significant digits below.
pub fn share(share: f64) -> String {
    format!("{} %", percent(share))
}

/// The same without its unit.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent.is_finite() && percent.abs() >= 1.0 {
        format!("{percent:.1}")
    } else {
        significant(percent, 2)
    }
}

/// A value of a quantity in the unit that suits it.
pub fn figure(quantity: Quantity, value: f64) -> String {
    let name = crate::table::quantity_name(quantity);
    match name.rsplit_once('_').map(|(_, unit)| unit) {
        _ if name.ends_with("_ns_per_byte") => format!("{} ns/B", significant(value, 4)),
        Some("ns") => time(value),
        Some("bps") => rate(value),
        Some("share") => share(value),
        _ => significant(value, 4),
    }
}

/// How long something took, as `40 s`, `3 min 12 s` or `2 h 5 min`.
pub fn lasted(ns: u64) -> String {
    match ns / 1_000_000_000 {
        s @ ..60 => format!("{s} s"),
        s @ ..600 => format!("{} min {} s", s / 60, s % 60),
        s @ ..7_200 => format!("{} min", s / 60),
        s => format!("{} h {} min", s / 3_600, s / 60 % 60),
    }
}

/// How many there are, as in `1 repetition` and `3 repetitions`.
pub fn counted(number: u64, one: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ if one.ends_with("ch") => format!("{} {one}es", count(number)),
        _ => format!("{} {one}s", count(number)),
    }
}

/// Reasons, each once, behind the names of what they are of; those of all are of `all`.
///
/// ```
/// let of = [("a", "late"), ("b", "late"), ("c", "lost")].map(|(name, why)| (name.to_owned(), why));
/// assert_eq!(sonde_report::reasons(4, of), ["a, b: late", "c: lost"]);
/// assert_eq!(sonde_report::reasons(1, [("a".into(), "late")]), ["all: late"]);
/// ```
pub fn reasons<'a>(number: usize, of: impl IntoIterator<Item = (String, &'a str)>) -> Vec<String> {
    let mut all: Vec<(&str, Vec<String>)> = Vec::new();
    for (name, why) in of {
        match all.iter_mut().find(|(known, _)| *known == why) {
            Some((_, names)) => names.push(name),
            None => all.push((why, vec![name])),
        }
    }
    let text = |(why, names): (&str, Vec<String>)| match names.len() == number {
        true => format!("all: {why}"),
        false => format!("{}: {why}", names.join(", ")),
    };
    all.into_iter().map(text).collect()
}

/// How a receive waits, as it is called in a sentence.
pub(crate) fn completion(wait: &str) -> &str {
    match wait {
        "block" => "blocking",
        "poll" => "busy polling",
        other => other,
    }
}

/// A time of day, UTC, as in `2026-11-21 04:33:02`.
///
/// Source: Howard Hinnant, chrono-compatible low-level date algorithms, `civil_from_days`. Deviations: only after 1970.
pub fn utc(unix_ns: u64) -> String {
    let seconds = unix_ns / 1_000_000_000;
    let (days, second) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}",
        second / 3_600,
        second / 60 % 60,
        second % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_not_zero_looks_like_it() {
        for exponent in -300..300 {
            let text = significant(1.234 * 10f64.powi(exponent), 3);
            assert!(
                text.contains(|c: char| ('1'..='9').contains(&c)),
                "{exponent}: {text}"
            );
        }
        assert_eq!(significant(0.0, 3), "0");
        assert_eq!(significant(0.000_431_2, 3), "0.000431");
        assert_eq!(significant(-0.043_12, 3), "-0.0431");
        assert_eq!(significant(9.996, 3), "10.00");
        assert_eq!(significant(20_050.4, 3), "20 050");
        assert_eq!(significant(f64::NAN, 3), "-");
        assert_eq!(share(0.000_000_3), "0.000030 %");
        assert_eq!(share(0.9986), "99.9 %");
        assert_eq!(share(0.0), "0 %");
    }

    #[test]
    fn units_are_chosen() {
        assert_eq!(count(1_234_567), "1 234 567");
        assert_eq!(time(431.0), "431.0 ns");
        assert_eq!(time(20_050_000.0), "20.05 ms");
        assert_eq!(time(3.2e9), "3.200 s");
        assert_eq!(rate(26_148_000.0), "26.15 Mb/s");
        assert_eq!(rate(19_970_000_000.0), "19.97 Gb/s");
        assert_eq!(bytes(65_536), "64 KiB");
        assert_eq!(bytes(65_535), "65 535 B");
        assert_eq!(bytes(1_448), "1448 B");
        assert_eq!(bytes(0), "0 B");
    }

    #[test]
    fn figures_have_the_unit_of_their_quantity() {
        assert_eq!(figure(Quantity::LatencyNs, 83_234.0), "83.23 µs");
        assert_eq!(figure(Quantity::ThroughputBps, 91_092_991.0), "91.09 Mb/s");
        assert_eq!(figure(Quantity::LostShare, 0.03), "3.0 %");
        assert_eq!(figure(Quantity::CpuSrcNsPerByte, 0.25), "0.2500 ns/B");
        assert_eq!(figure(Quantity::Retransmits, 17.0), "17.00");
    }

    #[test]
    fn one_is_singular() {
        assert_eq!(counted(1, "repetition"), "1 repetition");
        assert_eq!(counted(0, "repetition"), "0 repetitions");
        assert_eq!(counted(31_044, "switch"), "31 044 switches");
    }

    #[test]
    fn a_span_has_two_units_at_most() {
        let told = |s: u64| lasted(s * 1_000_000_000 + 999_999_999);
        assert_eq!([told(0), told(59)], ["0 s", "59 s"]);
        assert_eq!([told(60), told(599)], ["1 min 0 s", "9 min 59 s"]);
        assert_eq!([told(600), told(7_199)], ["10 min", "119 min"]);
        assert_eq!([told(7_200), told(10_799)], ["2 h 0 min", "2 h 59 min"]);
    }

    #[test]
    fn days_are_counted() {
        assert_eq!(utc(0), "1970-01-01 00:00:00");
        assert_eq!(utc(951_782_400_000_000_000), "2000-02-29 00:00:00");
        assert_eq!(utc(1_795_235_582_000_000_000), "2026-11-21 04:33:02");
    }
}
