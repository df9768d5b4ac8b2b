//! The sites that come with sonde.
//!
//! Checked: `tests/site.rs` and `tests/router.rs` run each of them.

use super::spec::{SiteError, SiteSpec, parse_site};

/// The sites that come with sonde, the simplest first.
const FILES: [(&str, &str); 8] = [
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
];

/// The network files that they name.
const SEGMENTS: [(&str, &str); 1] = [(
    "./segments/sandia-trial-atm.toml",
    include_str!("../../catalogue/sites/segments/sandia-trial-atm.toml"),
)];

/// A site of the catalogue.
fn own(name: &str, text: &str) -> Result<SiteSpec, SiteError> {
    parse_site(name, text, &|path| {
        let found = SEGMENTS.iter().find(|(name, _)| *name == path);
        let text = found.map(|(_, text)| (*text).to_owned());
        text.ok_or_else(|| "it is not in the catalogue".into())
    })
}

/// The sites that come with sonde.
pub fn sites() -> Vec<SiteSpec> {
    let of = |(name, text): &(&str, &str)| own(name, text).ok();
    FILES.iter().filter_map(of).collect()
}

/// The site of a selector: a name of [`sites`], or a file's path, which has a `/`, read by `read`.
///
/// # Errors
/// [`SiteError`], also where there is no such site or file.
pub fn resolve_site(
    selector: &str,
    read: &dyn Fn(&str) -> Result<String, String>,
) -> Result<SiteSpec, SiteError> {
    if let Some((name, text)) = FILES
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(selector))
    {
        return own(name, text);
    }
    if !selector.contains('/') {
        return Err(SiteError::Unknown {
            name: selector.to_owned(),
            known: FILES.map(|(name, _)| name).join(", "),
        });
    }
    match read(selector) {
        Ok(text) => parse_site(selector, &text, read),
        Err(problem) => Err(SiteError::Read {
            file: selector.to_owned(),
            problem,
        }),
    }
}
