//! The sites that come with sonde.
//!
//! Checked: `tests/site.rs` and `tests/router.rs` run each of them.

use super::spec::{SiteError, SiteSpec, parse_turned};

/// The sites that come with sonde, the simplest first.
const FILES: [(&str, &str); 16] = [
    (
        "two-rooms",
        include_str!("../../catalogue/sites/two-rooms.toml"),
    ),
    ("lace", include_str!("../../catalogue/sites/lace.toml")),
    (
        "lace-sp2",
        include_str!("../../catalogue/sites/lace-sp2.toml"),
    ),
    (
        "sandia-engineering",
        include_str!("../../catalogue/sites/sandia-engineering.toml"),
    ),
    (
        "sandia-trial",
        include_str!("../../catalogue/sites/sandia-trial.toml"),
    ),
    (
        "sandia-hybrid",
        include_str!("../../catalogue/sites/sandia-hybrid.toml"),
    ),
    (
        "rus-hippi",
        include_str!("../../catalogue/sites/rus-hippi.toml"),
    ),
    (
        "rus-campus",
        include_str!("../../catalogue/sites/rus-campus.toml"),
    ),
    (
        "two-cities",
        include_str!("../../catalogue/sites/two-cities.toml"),
    ),
    (
        "leaf-spine",
        include_str!("../../catalogue/sites/leaf-spine.toml"),
    ),
    (
        "edge-sites",
        include_str!("../../catalogue/sites/edge-sites.toml"),
    ),
    (
        "rus-workstation",
        include_str!("../../catalogue/sites/rus-workstation.toml"),
    ),
    (
        "rus-campus-routed",
        include_str!("../../catalogue/sites/rus-campus-routed.toml"),
    ),
    (
        "rus-europe",
        include_str!("../../catalogue/sites/rus-europe.toml"),
    ),
    (
        "upc-saba",
        include_str!("../../catalogue/sites/upc-saba.toml"),
    ),
    (
        "sci-testbed",
        include_str!("../../catalogue/sites/sci-testbed.toml"),
    ),
];

/// The network files that they name.
const SEGMENTS: [(&str, &str); 2] = [
    (
        "./segments/sandia-trial-atm.toml",
        include_str!("../../catalogue/sites/segments/sandia-trial-atm.toml"),
    ),
    (
        "./segments/upc-saba-atm.toml",
        include_str!("../../../../plans/examples/networks/upc.toml"),
    ),
];

/// A site of the catalogue.
fn own(name: &str, text: &str, turned: &[(&str, &str)]) -> Result<SiteSpec, SiteError> {
    parse_turned(name, text, turned, &|path| {
        let found = SEGMENTS.iter().find(|(name, _)| *name == path);
        let text = found.map(|(_, text)| (*text).to_owned());
        text.ok_or_else(|| "it is not in the catalogue".into())
    })
}

/// The knobs behind a site's name, by segment: `line.delay=2ms` is `delay=2ms` of the segment `line`.
fn knobs(text: &str) -> Result<Vec<(&str, &str)>, SiteError> {
    let parts = text.split(':').filter(|one| !one.is_empty());
    let knob = |one| {
        let cut = str::split_once(one, '.').filter(|(_, knob)| knob.contains('='));
        cut.ok_or_else(|| SiteError::Knob {
            knob: one.to_owned(),
        })
    };
    parts.map(knob).collect()
}

/// The sites that come with sonde.
pub fn sites() -> Vec<SiteSpec> {
    let of = |(name, text): &(&str, &str)| own(name, text, &[]).ok();
    FILES.iter().filter_map(of).collect()
}

/// The site of a selector: a name of [`sites`], or a file's path, which has a `/`, read by `read`; behind it `:SEGMENT.KNOB=VALUE` for knobs
/// of its segments' networks, as often as wanted.
///
/// # Errors
/// [`SiteError`], also where there is no such site or file.
pub fn resolve_site(
    selector: &str,
    read: &dyn Fn(&str) -> Result<String, String>,
) -> Result<SiteSpec, SiteError> {
    let (name, rest) = selector.split_once(':').unwrap_or((selector, ""));
    let turned = knobs(rest)?;
    let known = FILES.iter().find(|(own, _)| own.eq_ignore_ascii_case(name));
    let site = match known {
        Some((name, text)) => own(name, text, &turned),
        None if !name.contains('/') => Err(SiteError::Unknown {
            name: name.to_owned(),
            known: FILES.map(|(name, _)| name).join(", "),
        }),
        None => match read(name) {
            Ok(text) => parse_turned(name, &text, &turned, read),
            Err(problem) => Err(SiteError::Read {
                file: name.to_owned(),
                problem,
            }),
        },
    }?;
    // With its knobs, so that runs of several are told apart.
    let told = turned
        .iter()
        .map(|(segment, knob)| format!(":{segment}.{knob}"));
    Ok(SiteSpec {
        name: site.name.clone() + &told.collect::<String>(),
        ..site
    })
}
