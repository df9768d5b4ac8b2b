//! The page's types in TypeScript, made of the types whose JSON it reads: `cargo xtask types`.
//!
//! Model:   the JSON schema of a type, as serde writes it, names the types within it. Each becomes an interface, or a union where
//!          it is one of several; the outermost stand first, one for each kind of page, then all by name. Fields that are always there come first, in their
//!          order in Rust, then by name those that may be absent. What TypeScript would say otherwise than the schema is refused.
//! Checked: `every_shape_has_its_type`, `what_several_share_stands_once`, `what_has_no_type_is_refused`, `a_page_of_other_types_is_found`.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value};
use sonde_report::{ComparedRuns, HistoryOfRuns, RunList, View};

use crate::finding::Finding;

/// Where the page has its types.
const FILE: &str = "web/src/view.ts";
const COMMAND: &str = "cargo xtask types --write";
/// The largest array that is written as a tuple.
const TUPLE_MAX: u64 = 16;

/// Prints the types, or writes them to the page's sources.
///
/// # Errors
/// An argument that is not known, a type that has none in TypeScript, a file that cannot be written.
pub fn run(root: &Path, arguments: &[String]) -> Result<ExitCode> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        [] => print!("{}", page()?),
        ["--write"] => {
            fs::write(root.join(FILE), page()?).with_context(|| format!("writing {FILE}"))?;
        }
        _ => bail!("types takes --write or nothing"),
    }
    Ok(ExitCode::SUCCESS)
}

/// Finds where the page's types are not those that are made.
///
/// # Errors
/// A type that has none in TypeScript; a file that cannot be read.
pub fn check(root: &Path) -> Result<Option<Finding>> {
    let held = fs::read_to_string(root.join(FILE)).with_context(|| format!("reading {FILE}"))?;
    Ok(difference(&held, &page()?))
}

fn difference(held: &str, made: &str) -> Option<Finding> {
    if held == made {
        return None;
    }
    let same = held
        .split('\n')
        .zip(made.split('\n'))
        .take_while(|(held, made)| held == made);
    Some(Finding::new(
        Path::new(FILE),
        same.count() + 1,
        "not the types whose JSON the page reads",
        format!("run `{COMMAND}`"),
    ))
}

/// The file of the page's types.
fn page() -> Result<String> {
    let types = Types::new()
        .with::<View>()
        .with::<RunList>()
        .with::<ComparedRuns>()
        .with::<HistoryOfRuns>();
    Ok(format!(
        "\
// The data of the page: of a run, of a list, of a comparison and of a history, as the crate `report` writes them, and the types within
// them. Made by `{COMMAND}`; `cargo xtask tidy` compares.
//
// Units:   the last part of a name is its unit; rows hold their quantity's own unit, times of day are nanoseconds since 1970.

{}",
        types.text()?
    ))
}

/// Types that are written down, with those within them.
struct Types {
    generator: SchemaGenerator,
    /// The names of the outermost.
    outermost: Vec<String>,
}

impl Types {
    fn new() -> Self {
        let settings = SchemaSettings::draft2020_12().for_serialize();
        Self {
            generator: settings.into_generator(),
            outermost: Vec::new(),
        }
    }

    /// Also `T`.
    fn with<T: JsonSchema>(mut self) -> Self {
        self.generator.subschema_for::<T>();
        self.outermost.push(T::schema_name().into_owned());
        self
    }

    fn text(mut self) -> Result<String> {
        let all = self.generator.take_definitions(true);
        let outermost = self.outermost.iter();
        let within = all.keys().filter(|name| !self.outermost.contains(*name));
        let texts: Vec<String> = outermost
            .chain(within)
            .map(|name| {
                let of = all.get(name).context("it has no definition");
                of.and_then(|of| declaration(name, of))
                    .with_context(|| format!("the type {name}"))
            })
            .collect::<Result<_>>()?;
        Ok(texts.join("\n"))
    }
}

/// An interface, or a named union.
fn declaration(name: &str, schema: &Value) -> Result<String> {
    let mut text = comment(schema, "");
    if let Some(fields) = schema.get("properties").and_then(Value::as_object) {
        only(
            schema,
            &["type", "properties", "required", "additionalProperties"],
        )?;
        text += &format!("export interface {name} {{\n");
        for (field, of) in ordered(schema, fields) {
            text += &comment(of, "    ");
            text += &format!("    {}\n", member(schema, field, of)?);
        }
        return Ok(text + "}\n");
    }
    let all = alternatives(schema)?;
    if all.iter().all(|(about, _)| about.is_empty()) {
        let all: Vec<&str> = all.iter().map(|(_, of)| of.as_str()).collect();
        return Ok(text + &format!("export type {name} = {}\n", all.join(" | ")));
    }
    text += &format!("export type {name} =\n");
    for (about, of) in all {
        text += &format!("{about}    | {of}\n");
    }
    Ok(text)
}

/// What a type is one of, each with the comment above it.
fn alternatives(schema: &Value) -> Result<Vec<(String, String)>> {
    for union in ["oneOf", "anyOf"] {
        if let Some(all) = schema.get(union).and_then(Value::as_array) {
            only(schema, &[union])?;
            let each = all.iter().map(|one| {
                let mut of = alternatives(one)?;
                if let [(about, _)] = &mut of[..] {
                    *about = comment(one, "    ");
                }
                Ok(of)
            });
            return Ok(each.collect::<Result<Vec<_>>>()?.concat());
        }
    }
    let texts = if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        only(schema, &["$ref"])?;
        let name = reference.strip_prefix("#/$defs/");
        vec![name.context("a reference beyond its schema")?.to_owned()]
    } else if let Some(value) = schema.get("const") {
        only(schema, &["const", "type"])?;
        vec![literal(value)?]
    } else if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        only(schema, &["enum", "type"])?;
        values.iter().map(literal).collect::<Result<_>>()?
    } else {
        match schema.get("type") {
            Some(Value::String(one)) => vec![of_kind(one, schema)?],
            Some(Value::Array(all)) => {
                let kinds = all.iter().filter_map(Value::as_str);
                kinds
                    .map(|one| of_kind(one, schema))
                    .collect::<Result<_>>()?
            }
            _ => bail!("no type in TypeScript for {schema}"),
        }
    };
    Ok(texts
        .into_iter()
        .map(|text| (String::new(), text))
        .collect())
}

/// A type within another.
fn expression(schema: &Value) -> Result<String> {
    let all = alternatives(schema)?.into_iter().map(|(_, of)| of);
    Ok(all.collect::<Vec<_>>().join(" | "))
}

/// What `type` says of a schema, with the keywords that belong to it.
fn of_kind(kind: &str, schema: &Value) -> Result<String> {
    Ok(match kind {
        "string" => "string".into(),
        "integer" | "number" => "number".into(),
        "boolean" => "boolean".into(),
        "null" => "null".into(),
        "array" => array(schema)?,
        "object" => object(schema)?,
        _ => bail!("no type in TypeScript for {kind}"),
    })
}

fn array(schema: &Value) -> Result<String> {
    if let Some(items) = schema.get("prefixItems").and_then(Value::as_array) {
        let all: Vec<String> = items.iter().map(expression).collect::<Result<_>>()?;
        return Ok(format!("[{}]", all.join(", ")));
    }
    let one = expression(schema.get("items").context("an array of anything")?)?;
    let bound = |name: &str| schema.get(name).and_then(Value::as_u64);
    Ok(match (bound("minItems"), bound("maxItems")) {
        (Some(least), Some(most)) if least == most && most <= TUPLE_MAX => {
            format!("[{}]", vec![one; most as usize].join(", "))
        }
        _ if one.contains(" | ") => format!("({one})[]"),
        _ => format!("{one}[]"),
    })
}

fn object(schema: &Value) -> Result<String> {
    if let Some(fields) = schema.get("properties").and_then(Value::as_object) {
        let members: Vec<String> = ordered(schema, fields)
            .map(|(name, of)| member(schema, name, of))
            .collect::<Result<_>>()?;
        return Ok(format!("{{ {} }}", members.join("; ")));
    }
    let of = schema.get("additionalProperties");
    let of = expression(of.context("an object of anything")?)?;
    Ok(format!("Record<string, {of}>"))
}

/// The fields that are always there in their order, then by name the others.
fn ordered<'s>(
    schema: &'s Value,
    fields: &'s Map<String, Value>,
) -> impl Iterator<Item = (&'s str, &'s Value)> {
    let always = required(schema).filter_map(|name| Some((name, fields.get(name)?)));
    let others = fields.iter().map(|(name, of)| (name.as_str(), of));
    let others = others.filter(|(name, _)| required(schema).all(|one| one != *name));
    always.chain(others)
}

fn required(schema: &Value) -> impl Iterator<Item = &str> {
    let all = schema.get("required").and_then(Value::as_array);
    all.into_iter().flatten().filter_map(Value::as_str)
}

fn member(schema: &Value, name: &str, of: &Value) -> Result<String> {
    let may_be_absent = required(schema).all(|one| one != name);
    let mark = if may_be_absent { "?" } else { "" };
    let is_word = |name: &str| {
        !name.starts_with(|first: char| first.is_ascii_digit())
            && name
                .chars()
                .all(|one| one.is_ascii_alphanumeric() || one == '_')
    };
    let shown = match is_word(name) {
        true => name.to_owned(),
        false => quoted(name),
    };
    let of = expression(of).with_context(|| format!("the field {name}"))?;
    Ok(format!("{shown}{mark}: {of}"))
}

fn literal(value: &Value) -> Result<String> {
    Ok(match value {
        Value::String(text) => quoted(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
        _ => bail!("no literal in TypeScript for {value}"),
    })
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

/// The documentation of a type or field, a line of its own; nothing where there is none.
fn comment(schema: &Value, indent: &str) -> String {
    let Some(text) = schema.get("description").and_then(Value::as_str) else {
        return String::new();
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    format!("{indent}/** {} */\n", words.join(" ").replace("*/", "* /"))
}

/// Refuses keywords that would change what is said by those that are read here.
fn only(schema: &Value, read: &[&str]) -> Result<()> {
    const MEANINGLESS: [&str; 6] = [
        "description",
        "title",
        "default",
        "format",
        "$schema",
        "$defs",
    ];
    let mut all = schema.as_object().into_iter().flatten();
    let known = |name: &str| MEANINGLESS.contains(&name) || read.contains(&name);
    match all.find(|(name, _)| !known(name)) {
        Some((name, _)) => bail!(
            "no type in TypeScript for {name} beside {}",
            read.join(", ")
        ),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use schemars::JsonSchema;
    use serde::Serialize;

    use super::*;

    /// How loud; `*/` ends
    /// nothing.
    #[expect(dead_code, reason = "its schema is what is used")]
    #[derive(Serialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    enum Level {
        /// Hardly.
        VeryLow,
        High,
    }

    #[expect(dead_code, reason = "its schema is what is used")]
    #[derive(Serialize, JsonSchema)]
    enum Bare {
        A,
        #[serde(rename = "it's")]
        B,
    }

    /// What happened.
    #[expect(dead_code, reason = "its schema is what is used")]
    #[derive(Serialize, JsonSchema)]
    #[serde(tag = "kind", rename_all = "snake_case")]
    enum Event {
        /// It was lost.
        Lost {
            at_ns: u64,
            why: Option<Bare>,
        },
        Done,
    }

    /// All of it.
    #[derive(Serialize, JsonSchema)]
    struct All {
        /// Its name.
        name: String,
        level: Option<Level>,
        /// By when.
        #[serde(skip_serializing_if = "Option::is_none")]
        late: Option<bool>,
        events: Vec<Event>,
        pairs: Vec<(f64, u32)>,
        corner: [i8; 3],
        gaps: Vec<Option<f64>>,
        knobs: BTreeMap<String, Vec<String>>,
        #[serde(rename = "a-b", skip_serializing_if = "Vec::is_empty")]
        ab: Vec<u8>,
    }

    const MADE: &str = "\
/** All of it. */
export interface All {
    /** Its name. */
    name: string
    level: Level | null
    events: Event[]
    pairs: [number, number][]
    corner: [number, number, number]
    gaps: (number | null)[]
    knobs: Record<string, string[]>
    'a-b'?: number[]
    /** By when. */
    late?: boolean | null
}

export type Bare = 'A' | 'it\\'s'

/** What happened. */
export type Event =
    /** It was lost. */
    | { kind: 'lost'; at_ns: number; why: Bare | null }
    | { kind: 'done' }

/** How loud; `* /` ends nothing. */
export type Level =
    | 'high'
    /** Hardly. */
    | 'very-low'
";

    #[test]
    fn every_shape_has_its_type() {
        assert_eq!(Types::new().with::<All>().text().unwrap(), MADE);
    }

    #[test]
    fn what_several_share_stands_once() {
        /// Another.
        #[derive(Serialize, JsonSchema)]
        struct Zero {
            level: Level,
        }
        let both = Types::new().with::<Zero>().with::<All>().text().unwrap();
        let other = "/** Another. */\nexport interface Zero {\n    level: Level\n}\n\n";
        assert_eq!(both, other.to_owned() + MADE);
    }

    #[test]
    fn what_has_no_type_is_refused() {
        #[derive(Serialize, JsonSchema)]
        struct Any {
            any: Value,
        }
        #[derive(Serialize, JsonSchema)]
        struct Flat {
            name: String,
            #[serde(flatten)]
            event: Event,
        }
        let of = |made: Result<String>| format!("{:#}", made.unwrap_err());
        let any = of(Types::new().with::<Any>().text());
        assert!(any.starts_with("the type Any: the field any: "), "{any}");
        let flat = of(Types::new().with::<Flat>().text());
        assert!(flat.starts_with("the type Flat: "), "{flat}");
        assert!(flat.contains("oneOf"), "{flat}");
    }

    #[test]
    fn a_page_of_other_types_is_found() {
        assert_eq!(difference(MADE, MADE), None);
        let other = MADE.replace("level: Level", "level: string");
        let found = difference(&other, MADE).unwrap();
        assert_eq!(found.line(), 5);
        let found = found.to_string();
        assert!(
            found.ends_with("run `cargo xtask types --write`"),
            "{found}"
        );
    }
}
