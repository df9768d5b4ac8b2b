//! What is said of a kind of loss over all its networks.
//!
//! Units:   as the loss has them; µs, bits a second and per cent in the text.
//! Checked: the tests of `screen`.

use super::cold::NOT_EXPLAINED;
use crate::format::{rate, significant, time};
use crate::lost::{Lost, LostAt, LostUnit};
use crate::screen::{LossFigure, path_name};

/// All of one kind in a sentence; `alike` names libraries whose cost is not distinguishable from none.
pub(crate) fn sentence(at: LostAt, figures: &[LossFigure], alike: &[String]) -> String {
    let Some(worst) = figures.first() else {
        return String::new();
    };
    let (network, lost) = (&worst.network, &worst.lost);
    let others = others(figures);
    match at {
        LostAt::Library => libraries(figures, alike),
        LostAt::Hosts => format!(
            "{} and the hosts take {} of a small message, {} of it{}",
            path_name(&lost.by),
            times(figures),
            shares(figures),
            on(figures)
        ),
        LostAt::Start => format!(
            "{network}: the first message over {} takes {}, {} times a warm one{}{others}",
            path_name(&lost.by),
            time(lost.of as f64),
            significant(lost.times(), 2),
            parts(lost)
        ),
        LostAt::Pause => format!(
            "{network}: after a pause a message over {} takes {}, {} times the one before it{others}",
            path_name(&lost.by),
            time(lost.of as f64),
            significant(lost.times(), 2)
        ),
        LostAt::Stream => format!(
            "{network}: {} {}{}{others}",
            path_name(&lost.by),
            reached(lost),
            causes(lost)
        ),
        LostAt::LibraryRate => {
            let transport = lost.parts.first().map_or(String::new(), |part| {
                let name = path_name(&part.name);
                format!("; {name} reaches {}", rate(part.value as f64))
            });
            let by = path_name(&lost.by);
            format!("{network}: {by} {}{transport}{others}", reached(lost))
        }
        LostAt::Datagrams => {
            let place = lost.parts.first();
            let place = place.map_or(String::new(), |part| format!(", {}", part.name));
            format!(
                "{network}: {} of what UDP sends does not arrive{place}{others}",
                percent(lost.share())
            )
        }
        LostAt::Host => format!(
            "{} on {network} is {} slower than other hosts{others}",
            lost.by,
            percent(lost.times() - 1.0)
        ),
        LostAt::Route => format!(
            "{} on {network} is {} slower than other routes{others}",
            lost.by,
            percent(lost.times() - 1.0)
        ),
    }
}

/// Messages that the wire itself takes: nothing but fewer of them helps.
pub(crate) fn distance(network: &str, share: f64) -> String {
    format!(
        "{network}: {} of a small message is the line; only fewer messages help",
        percent(share)
    )
}

/// What libraries add to a message, the dearest first.
fn libraries(figures: &[LossFigure], alike: &[String]) -> String {
    let mut paths: Vec<&str> = Vec::new();
    for figure in figures {
        if !paths.contains(&figure.lost.by.as_str()) {
            paths.push(&figure.lost.by);
        }
    }
    let told = paths.iter().enumerate().map(|(at, path)| {
        let own: Vec<LossFigure> = figures
            .iter()
            .filter(|figure| figure.lost.by == *path)
            .cloned()
            .collect();
        let (name, range) = (path_name(path), times(&own));
        match at {
            0 => format!(
                "{name} adds {range} to a message, {} of it{}",
                shares(&own),
                on(&own)
            ),
            _ => format!("{name} {range}"),
        }
    });
    let mut told: Vec<String> = told.collect();
    if !alike.is_empty() {
        told.push(format!(
            "{}: not distinguishable from the transport",
            alike.join(", ")
        ));
    }
    told.join("; ")
}

/// A share without digits that say nothing.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        9.5.. => format!("{percent:.0} %"),
        1.0.. => format!("{percent:.1} %"),
        _ => format!("{} %", significant(percent, 2)),
    }
}

/// From the least to the most of a figure, once where they are the same.
fn range(
    figures: &[LossFigure],
    of: impl Fn(&Lost) -> f64,
    text: impl Fn(f64) -> String,
) -> String {
    let all = figures.iter().map(|figure| of(&figure.lost));
    let least = all.clone().fold(f64::INFINITY, f64::min);
    let (low, high) = (text(least), text(all.fold(0.0, f64::max)));
    match low == high {
        true => high,
        false => format!("{low} to {high}"),
    }
}

fn times(figures: &[LossFigure]) -> String {
    let micros = |ns: f64| match ns / 1e3 {
        us @ 10.0.. => format!("{us:.0}"),
        us => significant(us, 2),
    };
    format!("{} µs", range(figures, |lost| lost.value as f64, micros))
}

fn shares(figures: &[LossFigure]) -> String {
    let whole = |share: f64| format!("{:.0}", share * 100.0);
    format!("{} %", range(figures, Lost::share, whole))
}

/// From how little to how much several findings of one rule lose.
pub(crate) fn extent(all: &[&Lost]) -> Option<String> {
    let figures: Vec<LossFigure> = all
        .iter()
        .map(|lost| LossFigure {
            network: String::new(),
            lost: (*lost).clone(),
        })
        .collect();
    let first = figures.first()?;
    Some(match first.lost.unit {
        LostUnit::Ns | LostUnit::NsOnce => times(&figures),
        LostUnit::Bps | LostUnit::PerMille => format!("{} lost", shares(&figures)),
    })
}

/// On how many networks.
fn on(figures: &[LossFigure]) -> String {
    match figures {
        [one] => format!(", on {}", one.network),
        all => format!(", on {} networks", all.len()),
    }
}

/// The others of the same kind.
fn others(figures: &[LossFigure]) -> String {
    let rest = &figures[1..];
    if rest.is_empty() {
        return String::new();
    }
    let share = |share: f64| format!("{:.0}", share * 100.0);
    let range = range(rest, Lost::share, share);
    format!("; {} more: {range} % lost", rest.len())
}

fn reached(lost: &Lost) -> String {
    let left = lost.left() as f64;
    format!(
        "reaches {} of {}, {}",
        rate(left),
        rate(lost.of as f64),
        percent(1.0 - lost.share())
    )
}

fn causes(lost: &Lost) -> String {
    match lost.causes.is_empty() {
        true => String::new(),
        false => format!(" ({})", lost.causes.join(", ")),
    }
}

/// What a start-up is made of, as far as that is known.
fn parts(lost: &Lost) -> String {
    let part = |one: &crate::lost::LostPart| {
        let share = percent(one.value as f64 / lost.of.max(1) as f64);
        match one.name == NOT_EXPLAINED {
            true => format!("{share} {}", one.name),
            false => format!("{} {share}", one.name),
        }
    };
    let all: Vec<String> = lost.parts.iter().map(part).collect();
    match all.is_empty() {
        true => String::new(),
        false => format!(" ({})", all.join(", ")),
    }
}
