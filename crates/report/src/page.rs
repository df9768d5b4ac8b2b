//! The report as one HTML file: the page that `web/` builds, with the data of a run in it, or of another page.
//!
//! Model:   what stands between `<!--view-begin-->` and `<!--view-end-->`, each there exactly once, is replaced by the data as
//!          JSON in a script element that no browser runs. In it `<` is written as an escape, so that no text from a
//!          host can end the element or begin a comment; so are U+2028 and U+2029, which end lines in older readers.
//!          Rows are written by columns, each either its values or, where most come more than once, a list of distinct values and for
//!          each row the place in it, a number in the digits of [`ALPHABET`]: a quarter of the bytes. Data beyond
//!          [`PLAIN_BYTES_MAX`] are compressed and stand in the digits of base 64. The element of a page that is served says so, and how soon it comes anew.
//! Source:  HTML Living Standard §4.12.1.3 (restrictions for contents of script elements). Deviations: none.
//! Checked: `hostile_text_stays_in_its_place`, `a_page_without_markers_is_refused`, `the_built_page_takes_data`,
//!          `packed_rows_are_the_rows`, `many_data_are_compressed`, `a_served_page_says_so`, `the_policy_is_that_of_the_page`.

use crate::{PageData, View};
use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use sonde_measure::CSV_COLUMNS;
use std::collections::BTreeMap;
use std::io::Write;

/// What `build.rs` found.
const PAGE: &str = include_str!(concat!(env!("OUT_DIR"), "/page.html"));
const BEGIN: &str = "<!--view-begin-->";
const END: &str = "<!--view-end-->";

/// Data beyond this are compressed, which browsers can read since 2023.
const PLAIN_BYTES_MAX: usize = 3_000_000;
/// The digits of a place, none of which JSON or HTML escapes.
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// It was not there when sonde was built.
    #[error(
        "this sonde was built without the report page: install nodejs and npm, then make build"
    )]
    Absent,
    /// It has no place for the data.
    #[error(
        "the report page has {found} of {BEGIN} before {END}, where exactly one of each is needed: build web/ again"
    )]
    Markers {
        /// How many of them there are.
        found: usize,
    },
    /// The data are no JSON.
    #[error(
        "the data of the page cannot be written as JSON: {0}; `sonde report show` prints a run"
    )]
    Data(#[from] serde_json::Error),
    /// They cannot be compressed.
    #[error("the data of the page cannot be compressed: {0}; `sonde report show` prints a run")]
    Compressed(#[from] std::io::Error),
}

/// Whether this build has the page.
pub fn has_page() -> bool {
    !PAGE.is_empty()
}

/// Who hands a page to the reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Served {
    /// Nobody: it is a file.
    No,
    /// `sonde report serve`, once.
    Once,
    /// The same, of a run that has not ended: anew after so many seconds.
    Every(u32),
}

/// The report page of a run, as one file that needs no network.
///
/// # Errors
/// When sonde was built without the page.
pub fn html(view: &View) -> Result<String, PageError> {
    page(PageData::Run(view), Served::No)
}

/// The page with these data.
///
/// # Errors
/// When sonde was built without the page.
pub fn page(data: PageData<'_>, served: Served) -> Result<String, PageError> {
    if !has_page() {
        return Err(PageError::Absent);
    }
    embed(PAGE, data, served)
}

/// The content security policy that stands in the page; a server sends nothing looser. None where there is no page.
pub fn policy() -> Option<&'static str> {
    let (_, rest) = PAGE.split_once("http-equiv=\"Content-Security-Policy\" content=\"")?;
    Some(rest.split_once('"')?.0)
}

fn embed(page: &str, data: PageData<'_>, served: Served) -> Result<String, PageError> {
    let (begins, ends) = (page.matches(BEGIN).count(), page.matches(END).count());
    let parts = page
        .split_once(BEGIN)
        .and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)))
        .filter(|_| begins == 1 && ends == 1);
    let Some((before, after)) = parts else {
        return Err(PageError::Markers {
            found: begins.min(ends),
        });
    };
    let mut data = serde_json::to_value(data)?;
    if let Some(Value::Array(rows)) = data.get_mut("results").map(Value::take) {
        data["results"] = packed(&rows);
    }
    let data = serde_json::to_string(&data)?;
    let (kind, data) = match data.len() > PLAIN_BYTES_MAX {
        true => ("gzip", BASE64.encode(gzip(data.as_bytes())?)),
        false => (
            "json",
            data.replace('<', "\\u003c")
                .replace('\u{2028}', "\\u2028")
                .replace('\u{2029}', "\\u2029"),
        ),
    };
    let said = match served {
        Served::No => String::new(),
        Served::Once => " data-served".into(),
        Served::Every(seconds) => format!(" data-served data-refresh-s=\"{seconds}\""),
    };
    Ok(format!(
        "{before}<script type=\"application/{kind}\" id=\"view\"{said}>{data}</script>{after}"
    ))
}

fn gzip(data: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(data)?;
    encoder.finish()
}

/// Rows by columns; every row has the same fields.
fn packed(rows: &[Value]) -> Value {
    let fields = rows.first().and_then(Value::as_object);
    let mut names: Vec<&String> = fields
        .into_iter()
        .flat_map(|fields| fields.keys())
        .collect();
    // In the order of a row, which a JSON object does not keep; what is not a column of a table comes last.
    names.sort_by_key(|name| {
        CSV_COLUMNS
            .iter()
            .position(|column| column == name)
            .unwrap_or(CSV_COLUMNS.len())
    });
    let column = |name: &String| {
        let texts: Vec<String> = rows.iter().map(|row| row[name].to_string()).collect();
        let mut places = BTreeMap::new();
        let mut values = Vec::new();
        for (row, text) in rows.iter().zip(&texts) {
            places.entry(text).or_insert_with(|| {
                values.push(&row[name]);
                values.len() - 1
            });
        }
        if values.len() * 2 > rows.len() {
            let all: Vec<&Value> = rows.iter().map(|row| &row[name]).collect();
            return json!({ "name": name, "rows": all });
        }
        // As many digits as the last place needs; one value alone needs none.
        let base = ALPHABET.len();
        let mut units = vec![];
        while base.pow(units.len() as u32) < values.len() {
            units.insert(0, base.pow(units.len() as u32));
        }
        let digits = texts.iter().flat_map(|text| {
            let place = places[text];
            let digit = move |unit: &usize| char::from(ALPHABET[place / unit % base]);
            units.iter().map(digit)
        });
        json!({ "name": name, "values": values, "codes": digits.collect::<String>() })
    };
    let columns: Vec<Value> = names.into_iter().map(column).collect();
    json!({ "length": rows.len(), "columns": columns })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Runs, assessment, net};

    const EMPTY: &str = "<html><body><!--view-begin--><script id=\"view\"></script><!--view-end--><p></body></html>";

    /// The JSON in a page, as a browser takes it out: up to the first end of a script.
    fn data(page: &str) -> serde_json::Value {
        let (_, rest) = page
            .split_once("<script type=\"application/json\" id=\"view\">")
            .unwrap();
        serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
    }

    #[test]
    fn hostile_text_stays_in_its_place() {
        let hostile =
            "</script><script>alert(1)</script><!--view-begin--><!--\u{2028}\u{2029}\"\\\u{1b}[2J";
        let mut run = Runs::new()
            .network(net(hostile))
            .latency(hostile, "tcp", 1, 10_000)
            .done();
        run.warnings.push(hostile.into());
        run.head.command = hostile.into();
        let view = View::of(&run);
        let page = embed(EMPTY, PageData::Run(&view), Served::No).unwrap();
        assert_eq!(page.matches("<script").count(), 1);
        assert_eq!(page.matches("</script").count(), 1);
        assert!(!page.contains("<!--") && !page.contains(['\u{2028}', '\u{2029}']));
        let mut back = data(&page);
        assert_eq!(back["run"]["command"], hostile);
        assert_eq!(back["warnings"][0], hostile);
        let rows = serde_json::to_value(&view.results).unwrap();
        assert_eq!(back["results"], packed(rows.as_array().unwrap()));
        back["results"] = rows;
        assert_eq!(serde_json::from_value::<View>(back).unwrap(), view);
    }

    #[test]
    fn a_page_without_markers_is_refused() {
        let view = View::of(&Runs::new().done());
        for page in [
            "",
            "<!--view-begin-->",
            "<!--view-end--><!--view-begin-->",
            "<!--view-begin--><!--view-end--><!--view-end-->",
        ] {
            assert!(
                matches!(
                    embed(page, PageData::Run(&view), Served::No),
                    Err(PageError::Markers { .. })
                ),
                "{page}"
            );
        }
    }

    #[test]
    fn the_built_page_takes_data() {
        let view = View::of(&assessment());
        if !has_page() {
            let message = html(&view).unwrap_err().to_string();
            assert_eq!(
                message,
                "this sonde was built without the report page: install nodejs and npm, then make build"
            );
            println!("skipped: the report page is not built (web/dist/page.html)");
            return;
        }
        let page = html(&view).unwrap();
        assert!(page.len() < 2_000_000, "{} bytes", page.len());
        assert_eq!(data(&page)["schema"], "sonde-view/1");
    }

    #[test]
    fn a_place_has_the_digits_that_it_needs() {
        let row = |at: u64| json!({ "path": "tcp", "wait": at % 5, "cell": at % 1_000, "p50": at });
        let rows: Vec<Value> = (0..5_000).map(row).collect();
        let packed = packed(&rows);
        let widths = packed["columns"].as_array().unwrap().iter().map(|column| {
            let width = column["codes"].as_str().map(|codes| codes.len() / 5_000);
            (column["name"].as_str().unwrap(), width)
        });
        let widths: BTreeMap<&str, Option<usize>> = widths.collect();
        let wanted = [
            ("cell", Some(2)),
            ("p50", None),
            ("path", Some(0)),
            ("wait", Some(1)),
        ];
        assert_eq!(widths, BTreeMap::from(wanted));
    }

    #[test]
    fn many_data_are_compressed() {
        let mut run = Runs::new().network(net("wire")).done();
        run.warnings = (0..120_000)
            .map(|at| format!("</script> {at} of many"))
            .collect();
        let view = View::of(&run);
        let page = embed(EMPTY, PageData::Run(&view), Served::No).unwrap();
        assert!(page.len() < PLAIN_BYTES_MAX, "{} bytes", page.len());
        let (_, rest) = page
            .split_once("<script type=\"application/gzip\" id=\"view\">")
            .unwrap();
        let held = BASE64
            .decode(rest.split_once("</script>").unwrap().0)
            .unwrap();
        let back: Value = serde_json::from_reader(flate2::read::GzDecoder::new(&held[..])).unwrap();
        assert_eq!(back["warnings"], json!(run.warnings));
    }

    #[test]
    fn a_served_page_says_so() {
        let view = View::of(&Runs::new().done());
        for (served, said) in [
            (Served::No, "id=\"view\">"),
            (Served::Once, "id=\"view\" data-served>"),
            (
                Served::Every(10),
                "id=\"view\" data-served data-refresh-s=\"10\">",
            ),
        ] {
            let page = embed(EMPTY, PageData::Run(&view), served).unwrap();
            assert!(page.contains(said), "{page}");
        }
    }

    #[test]
    fn the_policy_is_that_of_the_page() {
        let Some(policy) = policy() else {
            assert!(!has_page());
            println!("skipped: the report page is not built (web/dist/page.html)");
            return;
        };
        for part in [
            "default-src 'none'",
            "script-src 'sha256-",
            "base-uri 'none'",
            "form-action 'none'",
        ] {
            assert!(policy.contains(part), "{policy}");
        }
    }

    #[test]
    fn packed_rows_are_the_rows() {
        let view = View::of(&assessment());
        let rows = serde_json::to_value(&view.results).unwrap();
        let rows = rows.as_array().unwrap();
        let packed = packed(rows);
        let columns = packed["columns"].as_array().unwrap();
        for (at, row) in rows.iter().enumerate() {
            for column in columns {
                let value = match column["codes"].as_str() {
                    None => &column["rows"][at],
                    Some(codes) => {
                        let width = codes.len() / rows.len();
                        let digit = |code: &u8| ALPHABET.iter().position(|one| one == code);
                        let code = codes.as_bytes()[at * width..][..width].iter();
                        let place = code.fold(0, |place, code| place * 64 + digit(code).unwrap());
                        &column["values"][place]
                    }
                };
                assert_eq!(value, &row[column["name"].as_str().unwrap()]);
            }
            assert_eq!(columns.len(), row.as_object().unwrap().len());
        }
        assert_eq!(
            (&columns[0]["name"], &columns[1]["name"]),
            (&json!("probe"), &json!("layer"))
        );
        let plain = serde_json::to_string(rows).unwrap().len();
        assert!(
            packed.to_string().len() * 4 < plain,
            "{} of {plain}",
            packed.to_string().len()
        );
    }
}
