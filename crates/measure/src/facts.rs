//! Groups of facts: each fact is declared once, with its type, its meaning and the name that its text had.
//!
//! Model:   a group is a struct of optional values ([`facts!`]), in JSON by the names of its fields; what is absent is left out, and
//!          what is not known is an error. Stores of versions 1 and 2 hold texts by name in place of it, which a [`Reader`] takes
//!          out of a map. Such a name may have one `*`, which stands for what the group is of: a size, an interface, a flow.
//! Checked: `what_no_one_knows_is_an_error`, `texts_of_a_run_are_read`, `any_evidence_comes_back` of `evidence`.

use std::collections::{BTreeMap, BTreeSet};

use crate::text::Text;

/// A fact that is not one: its name, its text, and what is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the repetition's fact `{name}` = `{text}` {why}: it was written by another version of sonde, or is damaged; read it with that version"
)]
pub struct Unread {
    /// As it stands among the facts.
    pub name: String,
    /// Its text, 200 bytes at most.
    pub text: String,
    /// What is wrong.
    pub why: &'static str,
}

const TEXT_MAX: usize = 200;

impl Unread {
    fn new(name: &str, text: &str, why: &'static str) -> Self {
        let end = (0..=TEXT_MAX.min(text.len()))
            .rev()
            .find(|at| text.is_char_boundary(*at));
        Self {
            name: name.into(),
            text: text[..end.unwrap_or(0)].into(),
            why,
        }
    }
}

/// Takes values out of a map of texts.
pub(crate) struct Reader {
    left: BTreeMap<String, String>,
    error: Option<Unread>,
}

impl Reader {
    pub(crate) fn new(all: BTreeMap<String, String>) -> Self {
        Self {
            left: all,
            error: None,
        }
    }

    /// Takes one value; `None` where it is absent. For a text that its type would not write again [`Self::finish`] returns the error.
    pub(crate) fn one<T: Text>(&mut self, name: &str, value: &mut Option<T>) {
        let Some(text) = self.left.remove(name) else {
            return;
        };
        match T::read(&text).filter(|read| read.write() == text) {
            Some(read) => *value = Some(read),
            None => {
                let error = Unread::new(name, &text, "is not of its form");
                self.error.get_or_insert(error);
            }
        }
    }

    /// What stands at the `*` of any of these names.
    fn keys(&self, names: &[String]) -> BTreeSet<String> {
        let known = self
            .left
            .keys()
            .flat_map(|name| names.iter().filter_map(|pattern| starred(pattern, name)));
        known.map(str::to_owned).collect()
    }

    /// All was read.
    ///
    /// # Errors
    /// A name that nothing asked for; a text that its type cannot read and write again.
    pub(crate) fn finish(self) -> Result<(), Unread> {
        match (self.error, self.left.first_key_value()) {
            (Some(error), _) => Err(error),
            (None, Some((name, text))) => Err(Unread::new(name, text, "is not known")),
            (None, None) => Ok(()),
        }
    }
}

/// What stands at the `*` of `pattern` in `name`.
fn starred<'n>(pattern: &str, name: &'n str) -> Option<&'n str> {
    let (before, after) = pattern.split_once('*')?;
    let middle = name.strip_prefix(before)?.strip_suffix(after)?;
    (!middle.is_empty()).then_some(middle)
}

/// A group of facts.
pub(crate) trait Facts: Default {
    /// The names of the texts of its values.
    const NAMES: &'static [&'static str];

    /// Takes its values out of texts; `name` makes the whole name of each.
    fn take(&mut self, from: &mut Reader, name: &dyn Fn(&str) -> String);

    /// Takes over what `other` has.
    fn merge(&mut self, other: Self);
}

/// Takes a map of groups out of texts, whose names have a `*` for the key.
pub(crate) fn take_all<K, F>(all: &mut BTreeMap<K, F>, from: &mut Reader, prefix: &str)
where
    K: Text + Ord,
    F: Facts,
{
    let names: Vec<String> = F::NAMES
        .iter()
        .map(|name| format!("{prefix}{name}"))
        .collect();
    for key in from.keys(&names) {
        // A key that is none leaves its value unread, which is told at the end.
        if let Some(read) = K::read(&key).filter(|read| read.write() == key) {
            let name = |name: &str| format!("{prefix}{}", name.replacen('*', &key, 1));
            all.entry(read).or_default().take(from, &name);
        }
    }
}

/// Takes over what another map has, key by key.
pub(crate) fn merge_all<K: Ord, F: Facts>(all: &mut BTreeMap<K, F>, others: BTreeMap<K, F>) {
    for (key, other) in others {
        all.entry(key).or_default().merge(other);
    }
}

/// Whether nothing is known of a group, or of any: it is left out.
pub(crate) fn is_empty<T: Default + PartialEq>(group: &T) -> bool {
    *group == T::default()
}

/// Declares a group: a struct of optional values, each with the name that its text had.
macro_rules! facts {
    ($($(#[$about:meta])* $group:ident { $($(#[$doc:meta])* $name:literal $field:ident: $type:ty,)* })*) => {$(
        $(#[$about])*
        #[derive(
            Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
        )]
        #[serde(default, deny_unknown_fields)]
        pub struct $group {
            $($(#[$doc])* #[serde(skip_serializing_if = "Option::is_none")] pub $field: Option<$type>,)*
        }

        impl $group {
            /// Takes over what `other` has.
            pub fn merge(&mut self, other: Self) {
                $(if other.$field.is_some() {
                    self.$field = other.$field;
                })*
            }
        }

        impl $crate::facts::Facts for $group {
            const NAMES: &'static [&'static str] = &[$($name),*];

            fn take(&mut self, from: &mut $crate::facts::Reader, name: &dyn Fn(&str) -> String) {
                $(from.one(&name($name), &mut self.$field);)*
            }

            fn merge(&mut self, other: Self) {
                Self::merge(self, other);
            }
        }
    )*};
}

pub(crate) use facts;
