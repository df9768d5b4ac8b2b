//! Arithmetic over the figures of one round: what a row of a bench is.
//!
//! Model:   numbers, names (`member.figure`, or that of a given), `+ - * /`, brackets, and the functions `min`, `max` and `abs`. A name
//!          without a figure makes the whole without a value, and so does a result that is not finite.
//! Checked: `terms_are_worked_out`, `what_is_no_term_is_refused`.

use anyhow::{Result, bail, ensure};

/// A term, parsed.
#[derive(Debug, Clone, PartialEq)]
pub enum Term {
    Number(f64),
    Name(String),
    Call(Function, Vec<Term>),
    Of(Box<Term>, Sign, Box<Term>),
}

/// What may be called.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Function {
    Min,
    Max,
    Abs,
}

/// What stands between two terms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sign {
    Add,
    Sub,
    Mul,
    Div,
}

impl Term {
    /// # Errors
    /// Text that is not a term.
    pub fn parse(text: &str) -> Result<Self> {
        let mut reader = Reader { rest: text };
        let term = reader.sum()?;
        reader.blanks();
        ensure!(reader.rest.is_empty(), "`{}` is left over", reader.rest);
        Ok(term)
    }

    /// The names in it.
    pub fn names(&self) -> Vec<&str> {
        match self {
            Self::Number(_) => Vec::new(),
            Self::Name(name) => vec![name],
            Self::Call(_, terms) => terms.iter().flat_map(Self::names).collect(),
            Self::Of(one, _, other) => [one.names(), other.names()].concat(),
        }
    }

    /// Its value; `None` where a name has no figure or the result is not finite.
    pub fn value(&self, look: &dyn Fn(&str) -> Option<f64>) -> Option<f64> {
        let value = match self {
            Self::Number(number) => *number,
            Self::Name(name) => look(name)?,
            Self::Call(function, terms) => {
                let mut values = Vec::new();
                for term in terms {
                    values.push(term.value(look)?);
                }
                let values = values.into_iter();
                match function {
                    Function::Min => values.reduce(f64::min)?,
                    Function::Max => values.reduce(f64::max)?,
                    Function::Abs => values.map(f64::abs).next()?,
                }
            }
            Self::Of(one, sign, other) => {
                let (one, other) = (one.value(look)?, other.value(look)?);
                match sign {
                    Sign::Add => one + other,
                    Sign::Sub => one - other,
                    Sign::Mul => one * other,
                    Sign::Div => one / other,
                }
            }
        };
        value.is_finite().then_some(value)
    }
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }

    /// Takes a mark where it comes next.
    fn takes(&mut self, mark: char) -> bool {
        self.blanks();
        let after = self.rest.strip_prefix(mark);
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
    }

    fn expect(&mut self, mark: char) -> Result<()> {
        ensure!(
            self.takes(mark),
            "`{mark}` is missing before `{}`",
            self.rest
        );
        Ok(())
    }

    fn word(&mut self, is_of: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|letter| !is_of(letter));
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        word
    }

    fn sum(&mut self) -> Result<Term> {
        let mut term = self.product()?;
        loop {
            let sign = match (self.takes('+'), self.takes('-')) {
                (true, _) => Sign::Add,
                (_, true) => Sign::Sub,
                _ => return Ok(term),
            };
            term = Term::Of(term.into(), sign, self.product()?.into());
        }
    }

    fn product(&mut self) -> Result<Term> {
        let mut term = self.single()?;
        loop {
            let sign = match (self.takes('*'), self.takes('/')) {
                (true, _) => Sign::Mul,
                (_, true) => Sign::Div,
                _ => return Ok(term),
            };
            term = Term::Of(term.into(), sign, self.single()?.into());
        }
    }

    fn single(&mut self) -> Result<Term> {
        if self.takes('(') {
            let term = self.sum()?;
            self.expect(')')?;
            return Ok(term);
        }
        if self
            .rest
            .starts_with(|letter: char| letter.is_ascii_digit())
        {
            let number = self.word(|letter| letter.is_ascii_alphanumeric() || letter == '.');
            let Ok(number) = number.parse() else {
                bail!("`{number}` is not a number");
            };
            return Ok(Term::Number(number));
        }
        let name = self.word(|letter| letter.is_ascii_alphanumeric() || "._".contains(letter));
        ensure!(
            !name.is_empty(),
            "a figure or a number is missing before `{}`",
            self.rest
        );
        if !self.takes('(') {
            return Ok(Term::Name(name.to_owned()));
        }
        let function = match name {
            "min" => Function::Min,
            "max" => Function::Max,
            "abs" => Function::Abs,
            other => bail!("there is no function `{other}`; there are min, max, abs"),
        };
        let mut terms = vec![self.sum()?];
        while self.takes(',') {
            terms.push(self.sum()?);
        }
        self.expect(')')?;
        ensure!(
            function != Function::Abs || terms.len() == 1,
            "abs takes one term"
        );
        Ok(Term::Call(function, terms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_worked_out() {
        let look = |name: &str| match name {
            "sonde.bps" => Some(9e8),
            "iperf3.bps" => Some(6e8),
            "none" => Some(0.0),
            _ => None,
        };
        for (text, wanted) in [
            ("sonde.bps / iperf3.bps", Some(1.5)),
            ("1 - 2 - 3", Some(-4.0)),
            ("8 / 4 / 2 + 2 * 3", Some(7.0)),
            ("abs(1 - 3) * max(1, 2, sonde.bps / 3e8)", Some(6.0)),
            ("min(4, iperf3.bps)", Some(4.0)),
            ("(1 + 2) * 1e-1", None),
            ("sonde.bps / none", None),
            ("sonde.absent", None),
        ] {
            let Ok(term) = Term::parse(text) else {
                assert_eq!(wanted, None, "{text}");
                continue;
            };
            let found = term.value(&look);
            assert_eq!(found.is_some(), wanted.is_some(), "{text}: {found:?}");
            if let Some((found, wanted)) = found.zip(wanted) {
                assert!((found - wanted).abs() < 1e-9, "{text}: {found}");
            }
        }
        let term = Term::parse("a.b / max(c, 2)").unwrap();
        assert_eq!(term.names(), ["a.b", "c"]);
    }

    #[test]
    fn what_is_no_term_is_refused() {
        for (text, why) in [
            ("", "a figure or a number is missing"),
            ("a.b /", "a figure or a number is missing"),
            ("(a.b", "`)` is missing"),
            ("a.b c.d", "`c.d` is left over"),
            (
                "gmean(a)",
                "there is no function `gmean`; there are min, max, abs",
            ),
            ("1x", "`1x` is not a number"),
            ("abs(1, 2)", "abs takes one term"),
        ] {
            let said = Term::parse(text).unwrap_err().to_string();
            assert!(said.contains(why), "{text}: {said}");
        }
    }
}
