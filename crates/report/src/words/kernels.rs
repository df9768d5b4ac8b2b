//! What is said of kernels.
//!
//! Units:   factors between medians; nanoseconds; shares of frames.
//! Checked: the tests of `finding::kernels`; `of_many_that_do_not_hold_the_extent_is_told`.

use super::Words;
use crate::format::{share, significant, time};

/// So many that do not hold are named; of more how far they go.
const NAMED_MAX: usize = 6;

/// What follows a sentence about hosts of another age.
pub(crate) fn of_age(age: &str) -> String {
    format!(" Computation is slowed down to historical hosts ({age}).")
}

/// A kernel, and the load that it ran under.
#[derive(Debug, Clone)]
pub(crate) struct Kernel {
    pub name: String,
    pub load: Option<String>,
}

impl Kernel {
    fn words(&self) -> String {
        match &self.load {
            Some(load) => format!("{} at {load}", self.name()),
            None => format!("{} idle", self.name()),
        }
    }

    /// As papers write it: `is` alone would read as a word.
    fn name(&self) -> String {
        self.name.to_uppercase()
    }
}

/// Two runs of a kernel beside each other.
pub(crate) struct Compared {
    pub kernel: Kernel,
    /// How many times the smaller one the other is expected to be.
    pub times: f64,
    /// Whether it is, intervals apart; `None` where there are none.
    pub apart: Option<bool>,
    /// The same factor as a paper prints it.
    pub printed: Option<f64>,
}

fn factor(times: f64) -> String {
    significant(times, 3)
}

/// From the least to the greatest factor; one where they read the same.
fn range(factors: impl Iterator<Item = f64> + Clone) -> String {
    let least = factor(factors.clone().fold(f64::INFINITY, f64::min));
    let most = factor(factors.fold(0.0, f64::max));
    match least == most {
        true => least,
        false => format!("{least} to {most}"),
    }
}

/// `, significantly in 20 of 24: 1.05 to 3.20 times; not CG idle (0.99)`. Without any interval the medians are told, and that they
/// are no more.
fn tally(all: &[Compared]) -> String {
    let is_told = all.iter().any(|one| one.apart.is_some());
    let is_so = |one: &Compared| match is_told {
        true => one.apart == Some(true),
        false => one.times > 1.0,
    };
    let (good, others): (Vec<&Compared>, Vec<&Compared>) = all.iter().partition(|one| is_so(one));
    let how = match is_told {
        true => ", significantly",
        false => ", by their medians",
    };
    let mut text = format!("{how} in {} of {}", good.len(), all.len());
    if !good.is_empty() {
        text += &format!(": {} times", range(good.iter().map(|one| one.times)));
    }
    if others.len() > NAMED_MAX {
        let times = range(others.iter().map(|one| one.times));
        text += &format!("; not in {}: {times} times", others.len());
    } else if !others.is_empty() {
        let named = others
            .iter()
            .map(|one| format!("{} ({})", one.kernel.words(), factor(one.times)));
        text += &format!("; not {}", named.collect::<Vec<_>>().join(", "));
    }
    if !is_told {
        text += "; significance is not known: a confidence interval needs six repetitions";
    }
    text
}

/// What a tally follows from: all factors, which names them where the sentence cannot.
fn figures(all: &[Compared]) -> String {
    let figures = all.iter().map(|one| {
        let printed = one.printed.map_or(String::new(), |times| {
            format!(" (printed {})", factor(times))
        });
        format!("{} {}{printed}", one.kernel.words(), factor(one.times))
    });
    figures.collect::<Vec<_>>().join(", ")
}

/// What kernels are of: network, class and count of ranks.
pub(crate) struct Of {
    pub network: String,
    pub class: String,
    pub ranks: u64,
}

impl Of {
    fn size(&self) -> String {
        format!("class {}, {} ranks", self.class, self.ranks)
    }
}

/// Two routes of a library.
pub(crate) struct Routes<'r> {
    pub of: Of,
    /// The slower one, and the faster.
    pub routes: [&'r str; 2],
    pub all: Vec<Compared>,
}

impl Words for Routes<'_> {
    fn sentence(&self) -> String {
        let [default, direct] = self.routes;
        format!(
            "On {} ({}) kernels take longer over {default} than over {direct}{}.",
            self.of.network,
            self.of.size(),
            tally(&self.all)
        )
    }

    fn arithmetic(&self) -> Option<String> {
        Some(figures(&self.all))
    }
}

/// A kernel's times under each load over the idle one: the factor and the load.
pub(crate) struct Levels {
    pub kernel: Kernel,
    pub factors: Vec<(f64, String)>,
}

/// Kernels under load beside idle.
pub(crate) struct Load {
    pub of: Of,
    pub by: String,
    pub all: Vec<Compared>,
    pub levels: Vec<Levels>,
    /// In how many kernels the time grows with each level, where there are several.
    pub rising: Option<usize>,
}

impl Words for Load {
    fn sentence(&self) -> String {
        let rising = self.rising.map_or(String::new(), |rising| {
            format!(
                "; the time grows with each level in {rising} of {}",
                self.levels.len()
            )
        });
        format!(
            "Under load on {} ({}) kernels over {} take longer than idle{}{rising}.",
            self.of.network,
            self.of.size(),
            self.by,
            tally(&self.all)
        )
    }

    fn arithmetic(&self) -> Option<String> {
        let levels = self.levels.iter().map(|levels| {
            let factors = levels.factors.iter();
            let factors = factors.map(|(times, under)| format!("{} at {under}", factor(*times)));
            format!(
                "{} {}",
                levels.kernel.name(),
                factors.collect::<Vec<_>>().join(" and ")
            )
        });
        Some(levels.collect::<Vec<_>>().join("; "))
    }
}

/// What the highest load adds by two routes, in nanoseconds.
pub(crate) struct RouteLoad<'r> {
    pub of: Of,
    pub routes: [&'r str; 2],
    pub added_ns: Vec<(Kernel, [f64; 2])>,
}

impl Words for RouteLoad<'_> {
    fn sentence(&self) -> String {
        let more = self.added_ns.iter().filter(|(_, [one, other])| one > other);
        format!(
            "On {} ({}) the highest load adds more time over {} than over {} in {} of {} kernels.",
            self.of.network,
            self.of.size(),
            self.routes[0],
            self.routes[1],
            more.count(),
            self.added_ns.len()
        )
    }

    fn arithmetic(&self) -> Option<String> {
        let figures = self.added_ns.iter().map(|(kernel, [one, other])| {
            format!("{} {} and {}", kernel.name(), time(*one), time(*other))
        });
        Some(figures.collect::<Vec<_>>().join("; "))
    }
}

/// Several hosts beside one.
pub(crate) struct Places {
    pub network: String,
    pub class: String,
    pub hosts: u64,
    pub all: Vec<Compared>,
}

impl Words for Places {
    fn sentence(&self) -> String {
        if self.all.iter().all(|one| one.times <= 1.0) {
            return format!(
                "No kernel (class {}) is faster on {} hosts of {} than on one host, shared memory aside.",
                self.class, self.hosts, self.network
            );
        }
        format!(
            "{} hosts of {} (class {}) beat every run on one host, shared memory aside{}.",
            self.hosts,
            self.network,
            self.class,
            tally(&self.all)
        )
    }

    fn arithmetic(&self) -> Option<String> {
        Some(figures(&self.all))
    }
}

/// Several hosts beside shared memory.
pub(crate) struct Reference {
    pub network: String,
    /// What the reference is.
    pub shared: String,
    /// In how many kernels it is beaten.
    pub beaten: usize,
    /// Times over it.
    pub times: Vec<(Kernel, f64)>,
}

impl Words for Reference {
    fn sentence(&self) -> String {
        format!(
            "The fastest runs over {} take {} times as long as {}, which is beaten in {} of {} kernels.",
            self.network,
            range(self.times.iter().map(|(_, times)| *times)),
            self.shared,
            self.beaten,
            self.times.len()
        )
    }

    fn arithmetic(&self) -> Option<String> {
        let figures = self.times.iter();
        let figures =
            figures.map(|(kernel, times)| format!("{} {}", kernel.name(), factor(*times)));
        Some(figures.collect::<Vec<_>>().join(", "))
    }
}

/// Several ranks on one host beside one alone, under load: how many times slower each is than idle.
pub(crate) struct OneHost {
    pub network: String,
    pub class: String,
    pub path: String,
    pub load: String,
    pub slowed: Vec<(Kernel, [f64; 2])>,
}

impl Words for OneHost {
    fn sentence(&self) -> String {
        let less = self
            .slowed
            .iter()
            .filter(|(_, [several, one])| several < one);
        format!(
            "At load {} on {} (class {}) several ranks on one host over {} are slowed less than one rank alone in {} of {} kernels.",
            self.load,
            self.network,
            self.class,
            self.path,
            less.count(),
            self.slowed.len()
        )
    }

    fn arithmetic(&self) -> Option<String> {
        let figures = self.slowed.iter().map(|(kernel, [several, one])| {
            format!(
                "{} {} and {} times",
                kernel.name(),
                factor(*several),
                factor(*one)
            )
        });
        Some(figures.collect::<Vec<_>>().join(", "))
    }
}

/// Messages that were counted, beside a paper's.
pub(crate) struct Messages {
    pub cite: String,
    /// Counted, and printed.
    pub counts: Vec<(Kernel, f64, f64)>,
}

impl Words for Messages {
    fn sentence(&self) -> String {
        let parts = self.counts.iter().map(|(_, own, printed)| own / printed);
        format!(
            "Ranks send {} times the messages that {} counts, in {} kernels.",
            range(parts),
            self.cite,
            self.counts.len()
        )
    }

    fn arithmetic(&self) -> Option<String> {
        let count = |value: f64| significant(value, 1);
        let figures = self.counts.iter().map(|(kernel, own, printed)| {
            format!("{} {} of {}", kernel.name(), count(*own), count(*printed))
        });
        Some(figures.collect::<Vec<_>>().join(", "))
    }
}

/// Frames that a network lost of kernels.
pub(crate) struct Lost {
    pub of: Of,
    pub by: String,
    /// The share of each, and the times over those of a network that loses fewer.
    pub shares: Vec<(Kernel, f64)>,
    pub all: Vec<Compared>,
}

impl Words for Lost {
    fn sentence(&self) -> String {
        let most = self.shares.iter().map(|(_, lost)| *lost);
        let beside = match self.all.is_empty() {
            true => String::new(),
            false => format!(
                "; where a network of this run loses fewer they take less time{}",
                tally(&self.all)
            ),
        };
        format!(
            "{} ({}) lost up to {} of the frames of kernels over {}{beside}.",
            self.of.network,
            self.of.size(),
            share(most.fold(0.0, f64::max)),
            self.by
        )
    }

    fn arithmetic(&self) -> Option<String> {
        let shares = self.shares.iter();
        let shares =
            shares.map(|(kernel, lost)| format!("{} lost {}", kernel.words(), share(*lost)));
        let mut text = shares.collect::<Vec<_>>().join(", ");
        if !self.all.is_empty() {
            text += &format!("; times relative to those: {}", figures(&self.all));
        }
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_that_do_not_hold_the_extent_is_told() {
        let compared = |of: u8| Compared {
            kernel: Kernel {
                name: format!("k{of}"),
                load: None,
            },
            times: f64::from(of),
            apart: Some(of > 8),
            printed: None,
        };
        let all: Vec<_> = (1..=9).map(compared).collect();
        assert_eq!(
            tally(&all),
            ", significantly in 1 of 9: 9.00 times; not in 8: 1.00 to 8.00 times"
        );
        let evidence = figures(&all);
        assert!(evidence.contains("K1 idle 1.00") && evidence.contains("K8 idle 8.00"));
        let few = tally(&all[6..]);
        assert!(
            few.ends_with("; not K7 idle (7.00), K8 idle (8.00)"),
            "{few}"
        );
    }
}
