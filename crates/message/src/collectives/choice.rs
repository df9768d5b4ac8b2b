//! Which algorithm makes a collective: its names, what was asked for, and the rule where nothing was.
//!
//! Model:   a call goes to the library's own collective where it has one, else to sonde's algorithm of the rule below. What
//!          is asked for by name (`allreduce=ring`, `barrier=library`, `all=sonde`) is used or is an error, never replaced.
//!          The rule sees only what all ranks of the group know alike, so that all take the same.
//! Source:  Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in MPICH", IJHPCA 19(1) 2005;
//!          the switch points are MPICH's (`MPIR_CVAR_*` of src/mpi/coll/cvars.txt, MPICH 3 and 4):
//!          broadcast below 12,288 B or 8 ranks binomial; below 524,288 B of a power of two scatter and doubling; else
//!          scatter and ring. Reduce and allreduce to 2,048 B, or of fewer elements than ranks, binomial and doubling; else
//!          Rabenseifner. Gather and scatter binomial, of uneven parts linear. Allgather of a whole below 524,288 B and a power
//!          of two doubling; below 81,920 B Bruck; else ring. Alltoall to 256 B each of 8 ranks and more Bruck; to
//!          32,768 B each, or of uneven parts, spread; else pairwise. Barrier dissemination. Scan doubling. Deviation:
//!          MPICH's pairwise alltoall pairs by exclusive or where ranks are a power of two; here it always shifts.
//! Units:   bytes.
//! Checked: `names_are_read_back`, `the_rule_follows_its_switch_points`, `what_cannot_be_is_refused`.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

use std::fmt;
use std::str::FromStr;

use crate::{Call, Kind, Parts};

/// A way of making a collective out of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// One rank with all others, one after the other; of a scan: from rank to rank.
    Linear,
    /// Up a binomial tree to rank 0 and down again.
    Tree,
    /// In round k with the ranks 2^k away (Hensgen, Finkel, Manber 1988).
    Dissemination,
    /// A binomial tree.
    Binomial,
    /// A binomial scatter, then a ring (van de Geijn).
    ScatterRing,
    /// A binomial scatter, then doubling.
    ScatterDoubling,
    /// From rank to rank, in segments that follow one another.
    Chain,
    /// Halving, then gathering or doubling (Rabenseifner 2004).
    Rabenseifner,
    /// In round k with the rank whose number differs in bit k; of a scan: with the ranks 2^k away (Hillis, Steele 1986).
    Doubling,
    /// From neighbour to neighbour in a ring.
    Ring,
    /// A binomial reduce to rank 0, then a binomial broadcast.
    ReduceBroadcast,
    /// In round k with the ranks 2^k away, blocks on their way together (Bruck et al. 1997).
    Bruck,
    /// In round k with the ranks k away, one pair of messages at a time.
    Pairwise,
    /// All at once, in groups of 32.
    Spread,
}

impl Algorithm {
    /// All, in the order of help texts.
    pub const ALL: [Self; 14] = [
        Self::Linear,
        Self::Tree,
        Self::Dissemination,
        Self::Binomial,
        Self::ScatterRing,
        Self::ScatterDoubling,
        Self::Chain,
        Self::Rabenseifner,
        Self::Doubling,
        Self::Ring,
        Self::ReduceBroadcast,
        Self::Bruck,
        Self::Pairwise,
        Self::Spread,
    ];

    /// As it is written: `scatter-ring`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Tree => "tree",
            Self::Dissemination => "dissemination",
            Self::Binomial => "binomial",
            Self::ScatterRing => "scatter-ring",
            Self::ScatterDoubling => "scatter-doubling",
            Self::Chain => "chain",
            Self::Rabenseifner => "rabenseifner",
            Self::Doubling => "doubling",
            Self::Ring => "ring",
            Self::ReduceBroadcast => "reduce-broadcast",
            Self::Bruck => "bruck",
            Self::Pairwise => "pairwise",
            Self::Spread => "spread",
        }
    }

    /// Those of a kind, each for any number of ranks and any sizes.
    pub const fn of(kind: Kind) -> &'static [Self] {
        match kind {
            Kind::Barrier => &[Self::Dissemination, Self::Tree, Self::Linear],
            Kind::Broadcast => &[
                Self::Binomial,
                Self::ScatterRing,
                Self::ScatterDoubling,
                Self::Chain,
                Self::Linear,
            ],
            Kind::Reduce => &[Self::Binomial, Self::Rabenseifner, Self::Linear],
            Kind::Allreduce => &[
                Self::Doubling,
                Self::Ring,
                Self::Rabenseifner,
                Self::ReduceBroadcast,
            ],
            Kind::Gather | Kind::Scatter => &[Self::Binomial, Self::Linear],
            Kind::Allgather => &[Self::Ring, Self::Doubling, Self::Bruck],
            Kind::Alltoall => &[Self::Pairwise, Self::Bruck, Self::Spread],
            Kind::Scan => &[Self::Doubling, Self::Linear],
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Who makes the collectives of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Maker {
    /// The library's own where it has one, else sonde by its rule.
    #[default]
    Either,
    /// The library's own; where it has none, the call is an error.
    Library,
    /// sonde by its rule, whatever the library has.
    Sonde,
    /// sonde by this algorithm.
    Named(Algorithm),
}

impl Maker {
    /// As it is written: `either`, `library`, `sonde`, or the algorithm.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Either => "either",
            Self::Library => "library",
            Self::Sonde => "sonde",
            Self::Named(algorithm) => algorithm.name(),
        }
    }
}

/// Who makes the collectives of each kind. As text: `allreduce=ring,barrier=library`; `all=sonde` is of every kind; nothing
/// is the usual of all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Choice {
    makers: [Maker; Kind::ALL.len()],
}

/// A text that names no choice.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` names no collective and its algorithm: write {wanted}")]
pub struct UnnamedChoice {
    /// What was written.
    pub text: String,
    /// What there is.
    pub wanted: String,
}

impl Choice {
    /// The same maker for every kind: [`Maker::Either`], [`Maker::Library`] or [`Maker::Sonde`].
    ///
    /// # Errors
    /// An algorithm that one of the kinds does not have.
    pub fn all(maker: Maker) -> Result<Self, UnnamedChoice> {
        Kind::ALL
            .into_iter()
            .try_fold(Self::default(), |choice, kind| choice.with(kind, maker))
    }

    /// With this maker for this kind.
    ///
    /// # Errors
    /// An algorithm that the kind does not have.
    pub fn with(mut self, kind: Kind, maker: Maker) -> Result<Self, UnnamedChoice> {
        if let Maker::Named(algorithm) = maker {
            if !Algorithm::of(kind).contains(&algorithm) {
                return Err(UnnamedChoice {
                    text: format!("{}={algorithm}", kind.name()),
                    wanted: wanted_of(kind),
                });
            }
        }
        if let Some(place) = self.makers.get_mut(kind as usize) {
            *place = maker;
        }
        Ok(self)
    }

    /// Who makes this kind.
    pub fn of(&self, kind: Kind) -> Maker {
        let maker = self.makers.get(kind as usize);
        maker.copied().unwrap_or_default()
    }
}

fn wanted_of(kind: Kind) -> String {
    let names = Algorithm::of(kind).iter().map(|algorithm| algorithm.name());
    let names: Vec<_> = names.chain(["library", "sonde", "either"]).collect();
    format!("{}={}", kind.name(), names.join("|"))
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.makers[0] != Maker::Either && self.makers.iter().all(|m| *m == self.makers[0]) {
            return write!(f, "all={}", self.makers[0].name());
        }
        let mut between = "";
        for kind in Kind::ALL {
            let maker = self.of(kind);
            if maker != Maker::Either {
                write!(f, "{between}{}={}", kind.name(), maker.name())?;
                between = ",";
            }
        }
        Ok(())
    }
}

impl FromStr for Choice {
    type Err = UnnamedChoice;

    fn from_str(text: &str) -> Result<Self, UnnamedChoice> {
        let mut choice = Self::default();
        for part in text
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
        {
            choice = choice.read(part)?;
        }
        Ok(choice)
    }
}

impl Choice {
    fn read(self, part: &str) -> Result<Self, UnnamedChoice> {
        let unnamed = |wanted| UnnamedChoice {
            text: part.into(),
            wanted,
        };
        let all = || {
            let kinds = Kind::ALL.into_iter().map(wanted_of);
            let kinds: Vec<_> = kinds.chain(["all=library|sonde|either".into()]).collect();
            kinds.join(", ")
        };
        let Some((kind, name)) = part.split_once('=') else {
            return Err(unnamed(all()));
        };
        let maker = match name {
            "either" => Some(Maker::Either),
            "library" => Some(Maker::Library),
            "sonde" => Some(Maker::Sonde),
            _ => Algorithm::ALL
                .into_iter()
                .find(|algorithm| algorithm.name() == name)
                .map(Maker::Named),
        };
        if kind == "all" {
            let several = maker.filter(|maker| !matches!(maker, Maker::Named(_)));
            return Self::all(several.ok_or_else(|| unnamed(all()))?);
        }
        let kind = Kind::ALL.into_iter().find(|known| known.name() == kind);
        let kind = kind.ok_or_else(|| unnamed(all()))?;
        self.with(kind, maker.ok_or_else(|| unnamed(wanted_of(kind)))?)
    }
}

const BROADCAST_SHORT_BYTES: usize = 12_288;
const BROADCAST_LONG_BYTES: usize = 524_288;
const BROADCAST_RANKS_MIN: usize = 8;
const REDUCE_SHORT_BYTES: usize = 2_048;
const ALLGATHER_SHORT_BYTES: usize = 81_920;
const ALLGATHER_LONG_BYTES: usize = 524_288;
const ALLTOALL_SHORT_BYTES: usize = 256;
const ALLTOALL_MEDIUM_BYTES: usize = 32_768;
const ALLTOALL_RANKS_MIN: usize = 8;

/// sonde's algorithm for a call of a group of so many ranks, by the rule of the module's head.
pub fn rule(call: &Call<'_>, size: usize) -> Algorithm {
    match call {
        Call::Barrier => Algorithm::Dissemination,
        Call::Broadcast { data, .. } => broadcast(data.len(), size),
        Call::Reduce { input, element, .. } => {
            if is_short(input.len(), element.bytes(), size) {
                Algorithm::Binomial
            } else {
                Algorithm::Rabenseifner
            }
        }
        Call::Allreduce { input, element, .. } => {
            if is_short(input.len(), element.bytes(), size) {
                Algorithm::Doubling
            } else {
                Algorithm::Rabenseifner
            }
        }
        Call::Gather { parts, .. } | Call::Scatter { parts, .. } => match parts {
            Parts::Even(_) => Algorithm::Binomial,
            Parts::Each(_) => Algorithm::Linear,
        },
        Call::Allgather { parts, .. } => allgather(parts.begin(size), size),
        Call::Alltoall { sent, received, .. } => match (sent, received) {
            (Parts::Even(bytes), Parts::Even(_)) => alltoall(*bytes, size),
            _ => Algorithm::Spread,
        },
        Call::Scan { .. } => Algorithm::Doubling,
    }
}

fn is_short(bytes: usize, element: usize, size: usize) -> bool {
    let elements = bytes.checked_div(element);
    bytes <= REDUCE_SHORT_BYTES || elements.is_some_and(|count| count < floor_power(size))
}

fn broadcast(bytes: usize, size: usize) -> Algorithm {
    if bytes < BROADCAST_SHORT_BYTES || size < BROADCAST_RANKS_MIN {
        Algorithm::Binomial
    } else if bytes < BROADCAST_LONG_BYTES && size.is_power_of_two() {
        Algorithm::ScatterDoubling
    } else {
        Algorithm::ScatterRing
    }
}

fn allgather(whole: usize, size: usize) -> Algorithm {
    if whole < ALLGATHER_LONG_BYTES && size.is_power_of_two() {
        Algorithm::Doubling
    } else if whole < ALLGATHER_SHORT_BYTES {
        Algorithm::Bruck
    } else {
        Algorithm::Ring
    }
}

fn alltoall(part: usize, size: usize) -> Algorithm {
    if part <= ALLTOALL_SHORT_BYTES && size >= ALLTOALL_RANKS_MIN {
        Algorithm::Bruck
    } else if part <= ALLTOALL_MEDIUM_BYTES {
        Algorithm::Spread
    } else {
        Algorithm::Pairwise
    }
}

/// The greatest power of two that is not greater.
pub(super) const fn floor_power(size: usize) -> usize {
    1 << size.ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Element, Operation};

    #[test]
    fn names_are_read_back() {
        for kind in Kind::ALL {
            let named = Algorithm::of(kind).iter().copied().map(Maker::Named);
            for maker in named.chain([Maker::Library, Maker::Sonde, Maker::Either]) {
                let choice = Choice::default().with(kind, maker).unwrap();
                assert_eq!(choice.to_string().parse(), Ok(choice));
            }
        }
        let choice: Choice = "all=sonde, allreduce=ring,barrier=library".parse().unwrap();
        assert_eq!(choice.of(Kind::Allreduce), Maker::Named(Algorithm::Ring));
        assert_eq!(choice.of(Kind::Barrier), Maker::Library);
        assert_eq!(choice.of(Kind::Scan), Maker::Sonde);
        assert_eq!(choice.to_string().parse(), Ok(choice));
        assert_eq!(Choice::all(Maker::Sonde).unwrap().to_string(), "all=sonde");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for (text, told) in [
            ("allreduce=bruck", "rabenseifner"),
            ("allreduce=best", "allreduce=doubling|ring"),
            ("reduceall=ring", "scan=doubling|linear"),
            ("ring", "all=library|sonde|either"),
            ("all=linear", "all=library|sonde|either"),
        ] {
            let error = text.parse::<Choice>().unwrap_err();
            assert_eq!(error.text, text);
            assert!(error.to_string().contains(told), "{error}");
        }
    }

    #[test]
    fn the_rule_follows_its_switch_points() {
        let broadcasts = [
            (12_287, 16, Algorithm::Binomial),
            (12_288, 7, Algorithm::Binomial),
            (12_288, 16, Algorithm::ScatterDoubling),
            (12_288, 17, Algorithm::ScatterRing),
            (524_288, 16, Algorithm::ScatterRing),
        ];
        for (bytes, size, algorithm) in broadcasts {
            let mut data = vec![0; bytes];
            let call = Call::Broadcast {
                root: 0,
                data: &mut data,
            };
            assert_eq!(rule(&call, size), algorithm, "{bytes} B, {size} ranks");
        }
        for (bytes, size, algorithm) in [
            (2_048, 4, Algorithm::Doubling),
            (2_056, 4, Algorithm::Rabenseifner),
            (2_056, 512, Algorithm::Doubling),
        ] {
            let (input, mut output) = (vec![0; bytes], vec![0; bytes]);
            let call = Call::Allreduce {
                input: &input,
                output: &mut output,
                element: Element::F64,
                operation: Operation::Sum,
            };
            assert_eq!(rule(&call, size), algorithm, "{bytes} B, {size} ranks");
        }
        assert_eq!(allgather(81_919, 6), Algorithm::Bruck);
        assert_eq!(allgather(81_920, 6), Algorithm::Ring);
        assert_eq!(allgather(81_920, 8), Algorithm::Doubling);
        assert_eq!(allgather(524_288, 8), Algorithm::Ring);
        assert_eq!(alltoall(256, 8), Algorithm::Bruck);
        assert_eq!(alltoall(256, 7), Algorithm::Spread);
        assert_eq!(alltoall(32_768, 8), Algorithm::Spread);
        assert_eq!(alltoall(32_769, 8), Algorithm::Pairwise);
    }
}
