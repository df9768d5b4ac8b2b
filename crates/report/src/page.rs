//! The report as one HTML file: the page that `web/` builds, with a run's data in it.
//!
//! Model:   what stands between `<!--view-begin-->` and `<!--view-end-->`, each there exactly once, is replaced by the data as
//!          JSON in a script element that no browser runs. In it `<` is written as an escape, so that no text from a
//!          host can end the element or begin a comment; so are U+2028 and U+2029, which end lines in older readers.
//!          Rows are written by columns, each either its values or a list of distinct values and indices into it where most
//!          come more than once: a third of the bytes.
//! Source:  HTML Living Standard §4.12.1.3 (restrictions for contents of script elements). Deviations: none.
//! Checked: `hostile_text_stays_in_its_place`, `a_page_without_markers_is_refused`, `the_built_page_takes_data`,
//!          `packed_rows_are_the_rows`.

use crate::View;
use serde_json::{Value, json};
use sonde_measure::CSV_COLUMNS;
use std::collections::BTreeMap;

/// What `build.rs` found.
const PAGE: &str = include_str!(concat!(env!("OUT_DIR"), "/page.html"));
const BEGIN: &str = "<!--view-begin-->";
const END: &str = "<!--view-end-->";

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
    #[error("the run cannot be written as JSON: {0}; `sonde report show` prints it")]
    Data(#[from] serde_json::Error),
}

/// Whether this build has the page.
pub fn has_page() -> bool {
    !PAGE.is_empty()
}

/// The report page of a run, as one file that needs no network.
///
/// # Errors
/// When sonde was built without the page.
pub fn html(view: &View) -> Result<String, PageError> {
    if !has_page() {
        return Err(PageError::Absent);
    }
    embed(PAGE, view)
}

fn embed(page: &str, view: &View) -> Result<String, PageError> {
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
    let mut data = serde_json::to_value(view)?;
    if let Some(Value::Array(rows)) = data.get_mut("results").map(Value::take) {
        data["results"] = packed(&rows);
    }
    let data = serde_json::to_string(&data)?
        .replace('<', "\\u003c")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029");
    Ok(format!(
        "{before}<script type=\"application/json\" id=\"view\">{data}</script>{after}"
    ))
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
        let indices: Vec<usize> = texts.iter().map(|text| places[text]).collect();
        json!({ "name": name, "values": values, "rows": indices })
    };
    let columns: Vec<Value> = names.into_iter().map(column).collect();
    json!({ "columns": columns })
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
        let page = embed(EMPTY, &view).unwrap();
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
                matches!(embed(page, &view), Err(PageError::Markers { .. })),
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
    fn packed_rows_are_the_rows() {
        let view = View::of(&assessment());
        let rows = serde_json::to_value(&view.results).unwrap();
        let rows = rows.as_array().unwrap();
        let packed = packed(rows);
        let columns = packed["columns"].as_array().unwrap();
        for (at, row) in rows.iter().enumerate() {
            for column in columns {
                let entry = &column["rows"][at];
                let value = match column.get("values") {
                    Some(values) => &values[entry.as_u64().unwrap() as usize],
                    None => entry,
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
            packed.to_string().len() * 2 < plain,
            "{} of {plain}",
            packed.to_string().len()
        );
    }
}
