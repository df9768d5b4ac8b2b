//! Groups of facts and their names: each fact is declared once, with its type, its name in stored runs and its meaning.
//!
//! Model:   a group is a struct of optional values ([`facts!`]). A [`Visit`] passes over all values of a group with their names: a
//!          [`Reader`] takes them out of a map of texts, a [`Writer`] puts them in. A name may have one `*`, which stands for what
//!          the group is of: a size, an interface, a flow.
//! Checked: `what_no_one_knows_is_an_error`, `any_evidence_comes_back` of `evidence`.

use std::collections::{BTreeMap, BTreeSet};

use crate::text::Text;

/// Passes over values with their names.
pub(crate) trait Visit {
    /// One value; `None` where it is absent.
    fn one<T: Text>(&mut self, name: &str, value: &mut Option<T>);

    /// The groups of a keyed map that a source has beyond those of the map: what stands at the `*` of any of these names.
    fn keys(&mut self, names: &[String]) -> BTreeSet<String>;
}

/// A fact that is not one: its name, its text, and what is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the launch's fact `{name}` = `{text}` {why}: it was written by another version of sonde, or is damaged; read it with that version"
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

/// Takes values out of a map.
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

impl Visit for Reader {
    fn one<T: Text>(&mut self, name: &str, value: &mut Option<T>) {
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

    fn keys(&mut self, names: &[String]) -> BTreeSet<String> {
        let known = self
            .left
            .keys()
            .flat_map(|name| names.iter().filter_map(|pattern| starred(pattern, name)));
        known.map(str::to_owned).collect()
    }
}

/// Puts values into a map.
#[derive(Default)]
pub(crate) struct Writer {
    pub(crate) all: BTreeMap<String, String>,
}

impl Visit for Writer {
    fn one<T: Text>(&mut self, name: &str, value: &mut Option<T>) {
        if let Some(value) = value {
            self.all.insert(name.into(), value.write());
        }
    }

    fn keys(&mut self, _: &[String]) -> BTreeSet<String> {
        BTreeSet::new()
    }
}

/// A group of facts.
pub(crate) trait Facts: Default {
    /// The names of its values.
    const NAMES: &'static [&'static str];

    /// Passes over its values; `name` makes the whole name of each.
    fn visit(&mut self, to: &mut impl Visit, name: &dyn Fn(&str) -> String);

    /// Takes over what `other` has.
    fn merge(&mut self, other: Self);
}

/// Passes over a map of groups, whose names have a `*` for the key.
pub(crate) fn visit_all<K, F>(all: &mut BTreeMap<K, F>, to: &mut impl Visit, prefix: &str)
where
    K: Text + Ord,
    F: Facts,
{
    let names: Vec<String> = F::NAMES
        .iter()
        .map(|name| format!("{prefix}{name}"))
        .collect();
    for key in to.keys(&names) {
        // A key that is none leaves its value unread, which is told at the end.
        if let Some(key) = K::read(&key).filter(|read| read.write() == key) {
            all.entry(key).or_default();
        }
    }
    for (key, facts) in all.iter_mut() {
        let key = key.write();
        facts.visit(to, &|name| {
            format!("{prefix}{}", name.replacen('*', &key, 1))
        });
    }
}

/// Takes over what another map has, key by key.
pub(crate) fn merge_all<K: Ord, F: Facts>(all: &mut BTreeMap<K, F>, others: BTreeMap<K, F>) {
    for (key, other) in others {
        all.entry(key).or_default().merge(other);
    }
}

/// Declares a group: a struct of optional values, each with its name in stored runs.
macro_rules! facts {
    ($($(#[$about:meta])* $group:ident { $($(#[$doc:meta])* $name:literal $field:ident: $type:ty,)* })*) => {$(
        $(#[$about])*
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct $group {
            $($(#[$doc])* pub $field: Option<$type>,)*
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

            fn visit(&mut self, to: &mut impl $crate::facts::Visit, name: &dyn Fn(&str) -> String) {
                $(to.one(&name($name), &mut self.$field);)*
            }

            fn merge(&mut self, other: Self) {
                Self::merge(self, other);
            }
        }
    )*};
}

pub(crate) use facts;
