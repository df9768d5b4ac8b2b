//! Contestants in turns, and their ratios within a turn, by the state that the machine was in.
//!
//! Model:   a round runs each member once, forwards and backwards in turns (AB, BA). Before the first, between two and after the
//!          last the way of a line between the two cores is measured: the least of some batches, the *floor*. It tells
//!          the state of the machine, since two virtual CPUs may share a cache at one time and none at another. A
//!          ratio is of two figures of the same round, and counts where the floors from before the earlier to after the
//!          later one are alike; else the round is done again, with a bound on the tries. Where floors of the ratios
//!          lie in two groups, they are two populations, `near` and `far`, and each has its own median, interval and
//!          row. A group of fewer than six (or than were asked for) is left out, and that is said.
//! Source:  rank intervals: [`sonde_stats::median_rank_interval`].
//! Units:   floors in nanoseconds; figures as the members give them.
//! Checked: `ratios_are_taken_within_a_round_and_a_state`, `two_states_are_told_apart`, `what_moves_is_done_again`.

use anyhow::{Result, ensure};
use sonde_stats::median_rank_interval;

use crate::prove::median;
use crate::prove::table::{Table, verdict};

/// Floors of one ratio may differ by this.
pub const STEADY: f64 = 1.15;
/// Floors that lie so far apart, with none between, are of two states.
const APART: f64 = 1.5;
/// Fewer have no interval at 95 %.
const PAIRS_MIN: usize = 6;
/// From so many ratios on a verdict is a claim.
const CLAIM: usize = 10;

/// What takes its turn.
pub struct Member<'a> {
    pub name: String,
    /// Its figures, always as many.
    pub run: Box<dyn FnMut() -> Result<Vec<f64>> + 'a>,
}

/// One turn of all.
struct Round {
    /// By member; none of one that failed.
    figures: Vec<Option<Vec<f64>>>,
    /// Its place in the order, by member.
    places: Vec<usize>,
    /// Before each place, and after the last.
    floors: Vec<f64>,
}

/// What was played.
pub struct Rounds {
    rounds: Vec<Round>,
    wanted: usize,
    /// Why a member takes no turn any more.
    pub broken: Vec<Option<anyhow::Error>>,
}

/// A figure of a member: which member, and which of its figures.
pub type Which = (usize, usize);

/// What was found in one state of the machine.
#[derive(Debug, PartialEq)]
pub struct Found {
    /// `near`, `far`, or `one` where all was one state.
    pub state: &'static str,
    /// The median floor.
    pub floor_ns: f64,
    pub values: Vec<f64>,
}

impl Found {
    pub fn median(&self) -> f64 {
        median(self.values.clone())
    }

    /// Of the median, at 95 %; none of fewer than six.
    fn interval(&self) -> Option<(f64, f64)> {
        interval(&self.values)
    }

    /// The state, its floor and the count: three cells of a row.
    fn cells(&self) -> Vec<String> {
        vec![
            self.state.into(),
            format!("{:.0}", self.floor_ns),
            self.values.len().to_string(),
        ]
    }
}

/// A range that a median ratio is to lie in.
pub struct Bar {
    pub what: String,
    pub least: f64,
    pub most: f64,
}

impl Bar {
    pub fn at_least(what: String, least: f64) -> Self {
        let most = f64::INFINITY;
        Self { what, least, most }
    }

    pub fn at_most(what: String, most: f64) -> Self {
        Self {
            what,
            least: 0.0,
            most,
        }
    }

    fn words(&self) -> String {
        match (self.least > 0.0, self.most.is_finite()) {
            (true, true) => format!("{} to {}", self.least, self.most),
            (true, false) => format!("at least {}", self.least),
            _ => format!("at most {}", self.most),
        }
    }
}

/// The heads of a table of [`judge`].
pub const HEADS: [&str; 9] = [
    "ratio",
    "state",
    "floor, ns",
    "pairs",
    "median",
    "95 % interval",
    "lowest to highest",
    "bound",
    "verdict",
];

/// A row for each state; what was not met is added. Without a bar the ratio is shown only.
pub fn judge(found: &[Found], bar: &Bar, table: &mut Table, unmet: &mut Vec<String>) {
    if found.is_empty() {
        let why = anyhow::anyhow!("no state of the machine lasted for enough pairs");
        table.broken(&[&bar.what], &why);
        unmet.push(format!("{}: {why}", bar.what));
    }
    for one in found {
        let ratio = one.median();
        let is_judged = bar.least > 0.0 || bar.most.is_finite();
        let is_met = (bar.least..=bar.most).contains(&ratio);
        let interval = one
            .interval()
            .map_or("–".into(), |(low, high)| format!("{low:.3} to {high:.3}"));
        let mut said = if is_judged {
            verdict(is_met)
        } else {
            "–".into()
        };
        if is_judged && one.values.len() < CLAIM {
            said.push_str(", few pairs");
        }
        let mut cells = vec![bar.what.clone()];
        cells.extend(one.cells());
        cells.extend([
            format!("{ratio:.3}"),
            interval.clone(),
            range(&one.values),
            if is_judged { bar.words() } else { "–".into() },
            said,
        ]);
        table.row(cells);
        if is_judged && !is_met {
            unmet.push(format!(
                "{} ({}, floor {:.0} ns): {ratio:.3} ({interval}), {}",
                bar.what,
                one.state,
                one.floor_ns,
                bar.words()
            ));
        }
    }
}

/// Of the median of positive numbers, at 95 %; none of fewer than six.
pub fn interval(values: &[f64]) -> Option<(f64, f64)> {
    const SCALE: f64 = 1e6;
    let whole: Vec<u64> = values.iter().map(|v| (v * SCALE) as u64).collect();
    let interval = median_rank_interval(&whole, 0.95)?;
    Some((interval.low as f64 / SCALE, interval.high as f64 / SCALE))
}

/// The lowest and the highest, in words.
pub fn range(values: &[f64]) -> String {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(0.0, f64::max);
    format!("{low:.3} to {high:.3}")
}

/// Whether floors are of one state.
pub fn is_steady(floors: &[f64]) -> bool {
    let low = floors.iter().copied().fold(f64::INFINITY, f64::min);
    floors.iter().all(|floor| *floor <= low * STEADY)
}

/// Between which floors two states part, where there are two.
fn parting(mut floors: Vec<f64>) -> Option<f64> {
    floors.sort_by(f64::total_cmp);
    let gaps = floors.windows(2).map(|two| (two[1] / two[0], two));
    let widest = gaps.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (widest.0 >= APART).then(|| (widest.1[0] * widest.1[1]).sqrt())
}

impl Round {
    /// Whether no member met another state than its neighbour; whether a ratio counts is asked of its own floors.
    fn is_steady(&self) -> bool {
        self.floors.windows(2).all(is_steady)
    }
}

impl Rounds {
    /// Plays until so many rounds were steady in one state, at most twice as many and two.
    ///
    /// # Errors
    /// The floor cannot be measured. Members that fail twice in a row are broken, and the others go on.
    pub fn play(
        what: &str,
        wanted: usize,
        members: &mut [Member<'_>],
        mut floor: impl FnMut() -> Result<f64>,
    ) -> Result<Self> {
        ensure!(wanted > 0, "no rounds are wanted");
        let mut all = Self {
            rounds: Vec::new(),
            wanted,
            broken: members.iter().map(|_| None).collect(),
        };
        while all.rounds.len() < 2 * wanted + 2 && all.steadiest() < wanted {
            let mut order: Vec<usize> = (0..members.len()).collect();
            if all.rounds.len() % 2 == 1 {
                order.reverse();
            }
            let mut round = Round {
                figures: members.iter().map(|_| None).collect(),
                places: vec![0; members.len()],
                floors: vec![floor()?],
            };
            for (place, index) in order.into_iter().enumerate() {
                round.places[index] = place;
                round.figures[index] = all.turn(what, index, &mut members[index]);
                round.floors.push(floor()?);
            }
            let told = format!("floors {:.0?} ns", round.floors);
            all.rounds.push(round);
            let (made, steady) = (all.rounds.len(), all.steadiest());
            eprintln!("prove {what}: round {made}, steady {steady} of {wanted}, {told}");
        }
        Ok(all)
    }

    fn turn(&mut self, what: &str, index: usize, member: &mut Member<'_>) -> Option<Vec<f64>> {
        if self.broken[index].is_some() {
            return None;
        }
        let figures = (member.run)().or_else(|_| (member.run)());
        match figures {
            Ok(figures) => {
                eprintln!("prove {what}: {figures:.3?} {}", member.name);
                Some(figures)
            }
            Err(error) => {
                eprintln!("prove {what}: {} failed: {error:#}", member.name);
                self.broken[index] = Some(error);
                None
            }
        }
    }

    /// The steady rounds of the state that has most of them.
    fn steadiest(&self) -> usize {
        let whole = |round: &Round| {
            let floor = median(round.floors.clone());
            round.is_steady().then_some((floor, 0.0))
        };
        let counts = self.by_state(self.rounds.iter().filter_map(whole).collect());
        counts
            .iter()
            .map(|found| found.values.len())
            .max()
            .unwrap_or(0)
    }

    /// Values with their floors, by state.
    fn by_state(&self, values: Vec<(f64, f64)>) -> Vec<Found> {
        // All floors tell where states part, not those of these values alone: names mean the same in each row.
        let floors = self.rounds.iter().flat_map(|round| round.floors.clone());
        let parted = parting(floors.collect());
        let states = match parted {
            Some(at) => vec![("near", 0.0..at), ("far", at..f64::INFINITY)],
            None => vec![("one", 0.0..f64::INFINITY)],
        };
        let mut all = Vec::new();
        for (state, range) in states {
            let of: Vec<_> = values.iter().filter(|v| range.contains(&v.0)).collect();
            if !of.is_empty() {
                all.push(Found {
                    state,
                    floor_ns: median(of.iter().map(|v| v.0).collect()),
                    values: of.iter().map(|v| v.1).collect(),
                });
            }
        }
        all
    }

    /// Those states that have enough values.
    fn enough(&self, values: Vec<(f64, f64)>) -> Vec<Found> {
        let mut all = self.by_state(values);
        all.retain(|found| found.values.len() >= PAIRS_MIN.min(self.wanted));
        all
    }

    /// The ratios of two figures of the same round, in each state.
    pub fn ratios(&self, ours: Which, theirs: Which) -> Vec<Found> {
        let ratio = |round: &Round| {
            let of = |which: Which| Some(round.figures[which.0].as_ref()?[which.1]);
            let (a, b) = (of(ours)?, of(theirs)?);
            let places = [round.places[ours.0], round.places[theirs.0]];
            let floors = &round.floors[places[0].min(places[1])..=places[0].max(places[1]) + 1];
            is_steady(floors).then(|| (median(floors.to_vec()), a / b))
        };
        self.enough(self.rounds.iter().filter_map(ratio).collect())
    }

    /// A figure over the floor around its turn, or the figure itself where `over_floor` is not wanted, in each state.
    pub fn figures(&self, which: Which, over_floor: bool) -> Vec<Found> {
        let figure = |round: &Round| {
            let value = round.figures[which.0].as_ref()?[which.1];
            let place = round.places[which.0];
            let floors = &round.floors[place..=place + 1];
            let floor = floors[0].min(floors[1]);
            let value = if over_floor { value / floor } else { value };
            is_steady(floors).then_some((floor, value))
        };
        self.enough(self.rounds.iter().filter_map(figure).collect())
    }

    /// How many rounds it took, in words.
    pub fn told(&self) -> String {
        let steady = self.rounds.iter().filter(|r| r.is_steady()).count();
        format!("{} rounds, {steady} of them steady", self.rounds.len())
    }

    /// Rows of a table whose heads are what, state, floor, count, median, lowest to highest.
    pub fn rows(&self, title: &str, members: &[(String, Which)], table: &mut Table) {
        for (name, which) in members {
            if let Some(error) = &self.broken[which.0] {
                table.broken(&[title, name], error);
                continue;
            }
            for found in self.figures(*which, false) {
                let mut cells = vec![title.to_owned(), name.clone()];
                cells.extend(found.cells());
                cells.push(format!("{:.3}", found.median()));
                cells.push(range(&found.values));
                table.row(cells);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds of two members, whose floors are these, one after the other, for ever.
    fn played(wanted: usize, floors: &[f64]) -> Rounds {
        let member = |name: &str, figure: f64| Member {
            name: name.into(),
            run: Box::new(move || Ok(vec![figure, 2.0 * figure])),
        };
        let mut members = [member("ours", 3.0), member("theirs", 2.0)];
        let mut next = floors.iter().copied().cycle();
        Rounds::play("test", wanted, &mut members, || Ok(next.next().unwrap())).unwrap()
    }

    #[test]
    fn ratios_are_taken_within_a_round_and_a_state() {
        let rounds = played(10, &[70.0, 71.0, 72.0]);
        assert_eq!(rounds.rounds.len(), 10);
        let found = rounds.ratios((0, 1), (1, 0));
        assert_eq!((found.len(), found[0].state), (1, "one"));
        assert_eq!(found[0].values, [3.0; 10]);
        assert!((found[0].floor_ns - 71.0).abs() < 1e-9);
        let over = rounds.figures((0, 0), true);
        assert!((over[0].median() - 3.0 / 70.0).abs() < 1e-3);
        let places: Vec<usize> = rounds.rounds.iter().map(|round| round.places[0]).collect();
        assert_eq!(places[..4], [0, 1, 0, 1], "AB, BA");
        let mut unmet = Vec::new();
        let mut table = Table::new(&HEADS);
        judge(
            &found,
            &Bar::at_least("x".into(), 3.1),
            &mut table,
            &mut unmet,
        );
        judge(
            &found,
            &Bar::at_most("x".into(), 3.0),
            &mut table,
            &mut unmet,
        );
        assert_eq!(unmet.len(), 1, "{unmet:?}");
        assert!(table.to_string().contains("3.000 to 3.000"), "{table}");
    }

    #[test]
    fn two_states_are_told_apart() {
        let floors = [[70.0; 3], [340.0; 3]].concat();
        let rounds = played(6, &floors);
        let found = rounds.ratios((0, 0), (1, 0));
        let states: Vec<&str> = found.iter().map(|one| one.state).collect();
        assert_eq!(states, ["near"], "one has enough, the other not");
        assert_eq!(rounds.rounds.len(), 11, "until one state has enough");
        assert_eq!(parting(vec![340.0, 70.0, 69.0]).unwrap() as u32, 154);
        assert_eq!(parting(vec![70.0, 90.0, 120.0]), None);
    }

    #[test]
    fn what_moves_is_done_again() {
        let rounds = played(3, &[70.0, 340.0, 70.0]);
        assert_eq!(rounds.rounds.len(), 8, "with a bound");
        assert!(rounds.ratios((0, 0), (1, 0)).is_empty());
        assert!(rounds.told().contains("0 of them"), "{}", rounds.told());
        let mut table = Table::new(&HEADS);
        let mut unmet = Vec::new();
        judge(&[], &Bar::at_least("x".into(), 1.0), &mut table, &mut unmet);
        assert!(unmet[0].contains("enough pairs"), "{unmet:?}");
    }

    #[test]
    fn who_fails_twice_is_out() {
        let mut calls = 0;
        let fails = Member {
            name: "fails".into(),
            run: Box::new(|| {
                calls += 1;
                anyhow::bail!("not there")
            }),
        };
        let goes = Member {
            name: "goes".into(),
            run: Box::new(|| Ok(vec![1.0])),
        };
        let rounds = Rounds::play("test", 4, &mut [fails, goes], || Ok(70.0)).unwrap();
        assert!(rounds.broken[0].is_some() && rounds.broken[1].is_none());
        assert_eq!(rounds.figures((1, 0), false)[0].values.len(), 4);
        assert!(rounds.figures((0, 0), false).is_empty());
        assert_eq!(calls, 2);
    }
}
