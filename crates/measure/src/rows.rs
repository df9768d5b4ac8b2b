//! The rows of a run: what its launches say together, and what is missing.
//!
//! Model:   a row is one quantity of one cell, phase and step, pooled over the cell's launches that did not fail. A cell of
//!          which nothing came has one row of its probe's main quantity that says why. Whatever makes a row worth less than
//!          the plan wanted stands in its reason.
//! Units:   of the row's quantity.
//! Checked: `one_row_for_each_population`, `steps_come_in_their_order`, `several_pairs_have_no_name`,
//!          `too_few_launches_are_told`, `strangers_make_a_row_uncertain`, `what_was_not_had_says_why`,
//!          `nothing_planned_is_left_out`, `missing_launches`.

use std::collections::{BTreeMap, BTreeSet};

use sonde_stats::{Bounds, Series, pool};

use crate::state::{self, Doubt, Touched, Traffic, Worth};
use crate::{
    CellRecord, Factors, Measurement, NetworkRecord, Number, Phase, Quantity, Repetition,
    ResultRow, Run, RunState, State, Status, Step, Verdict,
};

/// Below this many launches there is no interval.
const LAUNCHES_FOR_INTERVAL: u64 = 6;

/// What tells the rows of a cell apart, in the order in which they stand.
type Population = (Option<Step>, Quantity, Phase);

impl Factors {
    /// What this cell is about: the quantity and phase of the row that it always has.
    pub fn main(&self) -> (Quantity, Phase) {
        match self.probe.as_str() {
            "startup" => (Quantity::StartupNs, Phase::Cold),
            "throughput" | "load" => (Quantity::ThroughputBps, Phase::Warm),
            "anatomy" => (Quantity::OneWayNs, Phase::Warm),
            "rate" if self.layer == crate::Layer::Library => (Quantity::RatePerS, Phase::Warm),
            "rate" => (Quantity::ResponseNs, Phase::Warm),
            // Calls on names have no size.
            "files" if self.size_bytes == 0 => (Quantity::RatePerS, Phase::Warm),
            "files" => (Quantity::ThroughputBps, Phase::Warm),
            "collective" => (Quantity::CollectiveNs, Phase::Warm),
            "npb" => (Quantity::KernelNs, Phase::Warm),
            "messages" => (Quantity::ReplayNs, Phase::Warm),
            "check" => (Quantity::Checks, Phase::Warm),
            "place" => (Quantity::ProgramNs, Phase::Warm),
            "pattern" => match self.mode.as_deref() {
                Some("stream" | "duplex") => (Quantity::ThroughputBps, Phase::Warm),
                Some("exchange") => (Quantity::ExchangeNs, Phase::Warm),
                _ => (Quantity::LatencyNs, Phase::Warm),
            },
            _ => (Quantity::LatencyNs, Phase::Warm),
        }
    }
}

impl Run {
    /// Every row, in the plan's order of cells; within a cell the whole comes first, then the steps as they happen, and of
    /// each the quantities.
    pub fn rows(&self) -> Vec<ResultRow> {
        let mut launches: BTreeMap<&str, Vec<Repetition<'_>>> = BTreeMap::new();
        for one in self.repetitions() {
            launches.entry(&one.result.cell).or_default().push(one);
        }
        let mut set_aside: BTreeMap<&str, u64> = BTreeMap::new();
        for one in self.set_aside() {
            *set_aside.entry(&one.result.cell).or_default() += 1;
        }
        let mut rows = Vec::new();
        for cell in &self.cells {
            let made = launches.remove(cell.id.as_str()).unwrap_or_default();
            let set_aside = set_aside.get(cell.id.as_str()).copied();
            rows.extend(
                Launched {
                    run: self,
                    cell,
                    made,
                    set_aside: set_aside.unwrap_or(0),
                }
                .rows(),
            );
        }
        rows
    }

    /// Planned launches that were not made or failed: cell and index, in the plan's order. Cells that are skipped have none.
    pub fn missing(&self) -> Vec<(String, u64)> {
        let done: BTreeSet<(&str, u64)> = self
            .repetitions()
            .filter(Repetition::succeeded)
            .map(|one| (one.result.cell.as_str(), one.result.index))
            .collect();
        let wanted = self.cells.iter().filter(|cell| cell.skipped.is_none());
        wanted
            .flat_map(|cell| (0..cell.launches).map(move |index| (cell.id.as_str(), index)))
            .filter(|launch| !done.contains(launch))
            .map(|(cell, index)| (cell.to_string(), index))
            .collect()
    }

    /// Of a cell's repetitions each, where the undisturbed median of what the cell is about lies; `None` where it is not known which of the
    /// samples met a disturbance, and where there are none.
    pub fn ends(&self, cell: &CellRecord, made: &[Repetition<'_>]) -> Vec<Option<Bounds>> {
        let of = Launched {
            run: self,
            cell,
            made: made.to_vec(),
            set_aside: 0,
        };
        let (quantity, phase) = cell.factors.main();
        let best = of.best(&of.bare((None, quantity, phase), made));
        let limits = state::limits(quantity, of.traffic(), best);
        let is_main = |one: &&Measurement| {
            (one.step, one.quantity, one.phase) == (None, quantity, phase) && !one.series.is_empty()
        };
        let all = made.iter().map(|one| &one.result.series);
        let mains = all.map(|series| series.iter().find(is_main));
        mains.map(|one| state::ends(one?, limits)).collect()
    }

    /// Why a planned launch was not made.
    fn why_not(&self) -> String {
        let ended = |kind: &str| matches!(kind, "interrupted" | "host_lost" | "budget");
        let told = self.events.iter().rev().find(|event| ended(&event.kind));
        match (told, self.head.state) {
            (Some(event), _) => event.text.clone(),
            (None, RunState::Open) => "the run was not ended: it is running, or was killed".into(),
            (None, _) => "the run ended before it".into(),
        }
    }
}

/// The best figure of a row over what the model allows: its highest rate, at least, or the bound over its shortest time.
fn part_of_bound(row: &ResultRow, launches: &[&Measurement], best: u64) -> Option<f64> {
    let best = best as f64;
    if row.quantity != Quantity::ThroughputBps {
        return row.min.map(|shortest| best / shortest.0);
    }
    let least = |one: &&Measurement| one.series.max().map(|bps| state::least(one, bps));
    let highest = launches.iter().filter_map(least).max()?;
    Some(highest as f64 / best)
}

/// A measurement and the repetition that it is of.
type Measured<'a> = (Repetition<'a>, &'a Measurement);

/// A cell and its repetitions, and how many others were set aside.
struct Launched<'a> {
    run: &'a Run,
    cell: &'a CellRecord,
    made: Vec<Repetition<'a>>,
    set_aside: u64,
}

impl Launched<'_> {
    fn rows(&self) -> Vec<ResultRow> {
        let mut populations: BTreeMap<Population, Vec<Measured<'_>>> = BTreeMap::new();
        for repetition in self.succeeded() {
            for one in &repetition.result.series {
                let population = (one.step, one.quantity, one.phase);
                let measured = populations.entry(population).or_default();
                measured.push((repetition, one));
            }
        }
        if populations.is_empty() {
            return vec![self.nothing()];
        }
        let rows = populations.iter();
        let mut rows: Vec<ResultRow> = rows
            .map(|(population, measured)| self.row(*population, measured))
            .collect();
        self.follow(&mut rows);
        rows
    }

    /// What share of a time was spent in calls is not known where the time is not: it may have been the same in each repetition, and wrong.
    fn follow(&self, rows: &mut [ResultRow]) {
        let (quantity, phase) = self.cell.factors.main();
        let main = (quantity, Some(phase));
        let time = rows
            .iter()
            .find(|row| (row.quantity, row.phase) == main && row.step.is_none());
        let Some((doubts, why)) = time.and_then(|row| Some((row.doubts.clone(), row.why.clone()?)))
        else {
            return;
        };
        let is_part = |row: &&mut ResultRow| {
            row.quantity == Quantity::CommunicatingShare && row.state == State::Sound
        };
        for row in rows.iter_mut().filter(is_part) {
            row.state = State::Uncertain;
            row.doubts.clone_from(&doubts);
            row.why = Some(format!("its time is uncertain: {why}"));
        }
    }

    fn succeeded(&self) -> impl Iterator<Item = Repetition<'_>> {
        self.made.iter().copied().filter(Repetition::succeeded)
    }

    /// The row of a cell of which no launch gave anything.
    fn nothing(&self) -> ResultRow {
        let (quantity, phase) = self.cell.factors.main();
        let row = self.bare((None, quantity, phase), &self.made);
        let (status, reason) = match (&self.cell.skipped, self.failures()) {
            (Some(reason), _) => (Status::Skipped, reason.clone()),
            (None, Some(failures)) => (Status::Failed, failures),
            (None, None) if self.made.is_empty() => {
                let reason = format!("not measured: {}", self.run.why_not());
                (Status::Failed, reason)
            }
            (None, None) => (Status::Failed, "the repetitions gave no result".into()),
        };
        ResultRow {
            status,
            reason: Some(reason),
            ..row
        }
    }

    fn row(&self, population: Population, measured: &[Measured<'_>]) -> ResultRow {
        let (with, without): (Vec<_>, Vec<_>) =
            measured.iter().partition(|(_, one)| !one.series.is_empty());
        let why = without.first().map(|(_, one)| {
            let reason = one.reason.as_deref();
            reason.unwrap_or("no sample was taken").to_string()
        });
        let shown = if with.is_empty() { &without } else { &with };
        let launches: Vec<Repetition<'_>> = shown.iter().map(|(one, _)| *one).collect();
        let row = self.bare(population, &launches);
        let series: Vec<Series> = with.iter().map(|(_, one)| one.series.clone()).collect();
        let Some(pooled) = pool(&series) else {
            // What a cell is about was tried; what comes beside it needs something that is missing.
            let (quantity, phase) = self.cell.factors.main();
            let status = match population == (None, quantity, phase) {
                true => Status::Failed,
                false => Status::Skipped,
            };
            return ResultRow {
                status,
                reason: why,
                ..row
            };
        };
        let row = ResultRow {
            status: Status::Measured,
            reason: self.reservations(pooled.launches, why.as_deref()),
            ..row
        }
        .with_statistics(&pooled);
        let verdicts = self
            .succeeded()
            .filter_map(|one| one.launch.verdict.as_ref());
        let verdict = Verdict::merged(verdicts);
        let launches: Vec<&Measurement> = with.iter().map(|(_, one)| *one).collect();
        let best = self.best(&row);
        let part = best.and_then(|best| part_of_bound(&row, &launches, best));
        let row = ResultRow {
            verdict: match part {
                Some(part) => verdict.map(|verdict| verdict.bounded(part)),
                None => verdict,
            },
            ..row
        };
        self.judged(row, &launches, best)
    }

    /// The row with what its figure is worth, by the `best` that the model allows.
    fn judged(&self, row: ResultRow, launches: &[&Measurement], best: Option<u64>) -> ResultRow {
        let Some(p50) = row.p50 else {
            return row;
        };
        let limits = state::limits(row.quantity, self.traffic(), best);
        let touched = Touched::of(launches, limits);
        let worth = Worth {
            quantity: row.quantity,
            p50,
            interval: row.ci95_low.zip(row.ci95_high),
            launches: row.launches,
            set_aside: row.set_aside,
            touched,
            whatever: state::whatever(launches, limits),
            verdict: row.verdict.as_ref(),
            among_strangers: self.strangers(),
        };
        let (doubts, why): (Vec<Doubt>, Vec<String>) = worth.doubts().into_iter().unzip();
        let per_unit = row.quantity.per_unit();
        // Where it was not seen which it met, a disturbance may have met all.
        let ends = touched.map_or(worth.whatever, |of| of.interval);
        let (low, high) = ends.unwrap_or_default();
        let number = |end: Option<u64>| end.map(|end| Number::of(end, per_unit));
        ResultRow {
            touched_share: touched.map(|of| Number(of.share())),
            undisturbed_p50: number(touched.and_then(|of| of.median)),
            undisturbed_low: number(low),
            undisturbed_high: number(high),
            state: match doubts.is_empty() {
                true => State::Sound,
                false => State::Uncertain,
            },
            why: (!doubts.is_empty()).then(|| why.join("; ")),
            doubts,
            ..row
        }
    }

    /// What else went on, as far as it was seen.
    fn traffic(&self) -> Traffic {
        let factors = &self.cell.factors;
        let again = |one: Repetition<'_>| {
            let hosts = one.launch.interference.iter();
            let lost = |of: &Measurement| {
                of.quantity == Quantity::LostShare && of.series.max().is_some_and(|most| most > 0)
            };
            hosts
                .filter_map(|host| host.retransmits)
                .any(|count| count > 0)
                || one.result.series.iter().any(lost)
        };
        match (factors.probe.as_str(), factors.mode.as_deref()) {
            _ if factors.load.is_some() => Traffic::Other,
            ("throughput", Some("stream")) => Traffic::Stream,
            // Of the stream the other way the line has but acknowledgements.
            ("pattern", Some("stream" | "duplex")) if self.is_apart() => Traffic::Stream,
            ("pattern", Some("latency")) if self.is_apart() && !self.succeeded().any(again) => {
                Traffic::OneMessage
            }
            ("latency", _) | ("throughput", Some("message")) if !self.succeeded().any(again) => {
                Traffic::OneMessage
            }
            _ => Traffic::Other,
        }
    }

    /// Whether no flow of its round shared a line with it: it was alone, or the pairs of a matching were joined by a switch.
    fn is_apart(&self) -> bool {
        let is_alone = |one: Repetition<'_>| one.launch.evidence.flow.together == Some(1);
        let pattern = self.cell.factors.knobs.get("pattern");
        let topology = self.network().and_then(|one| one.row.topology.as_deref());
        pattern.is_some_and(|name| name == "all-pairs") && topology == Some("star")
            || self.succeeded().all(is_alone)
    }

    /// What the model allows at best, in the base unit of the row's quantity. None where it states no bound, or for the sum of several
    /// flows.
    fn best(&self, row: &ResultRow) -> Option<u64> {
        let factors = &self.cell.factors;
        if row.step.is_some() || factors.knobs.get("flow").is_some_and(|flow| flow == "all") {
            return None;
        }
        let size = match factors.mode.as_deref() {
            Some("stream" | "duplex") => None,
            _ => row.size_bytes,
        };
        let ceilings = &self.network()?.ceilings;
        let bound = ceilings.iter().find(|ceiling| {
            (ceiling.quantity, ceiling.size_bytes) == (row.quantity, size)
                && Some(ceiling.phase) == row.phase
                && ceiling.path == row.path
        })?;
        Some(bound.value)
    }

    fn network(&self) -> Option<&NetworkRecord> {
        let mut networks = self.run.networks.iter();
        networks.find(|network| network.row.name == self.cell.factors.network)
    }

    /// What makes a row that `gave` launches made worth less.
    fn reservations(&self, gave: u64, why: Option<&str>) -> Option<String> {
        let parts = [
            self.shortfall(gave, why),
            self.made_again(),
            self.among_strangers(),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// In how many launches unauthenticated peers came to a data port.
    fn strangers(&self) -> u64 {
        let came = self.succeeded().filter(|one| one.launch.met_strangers());
        came.count() as u64
    }

    /// That strangers came: the time that they cost is in the figures.
    fn among_strangers(&self) -> Option<String> {
        let came = self.strangers();
        (came > 0).then(|| {
            let plural = if came == 1 {
                "repetition"
            } else {
                "repetitions"
            };
            format!("uncertain: unauthenticated peers came to a data port in {came} {plural}")
        })
    }

    /// That repetitions were made again.
    fn made_again(&self) -> Option<String> {
        (self.set_aside > 0).then(|| {
            format!(
                "{} set aside for a disturbance and made again",
                self.set_aside
            )
        })
    }

    /// What is less than the plan wanted, in a row that `gave` launches made.
    fn shortfall(&self, gave: u64, why: Option<&str>) -> Option<String> {
        let mut parts = Vec::new();
        if gave < LAUNCHES_FOR_INTERVAL {
            let plural = if gave == 1 {
                "repetition"
            } else {
                "repetitions"
            };
            parts.push(format!("{gave} {plural}: a confidence interval needs six"));
        }
        if gave < self.cell.launches {
            parts.push(format!("{} were planned", self.cell.launches));
            parts.extend(self.failures());
            if (self.made.len() as u64) < self.cell.launches {
                let left = self.cell.launches - self.made.len() as u64;
                parts.push(format!("{left} not made: {}", self.run.why_not()));
            }
            parts.extend(why.map(str::to_string));
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// How many launches failed, with each cause once.
    fn failures(&self) -> Option<String> {
        let mut causes: Vec<&str> = Vec::new();
        let mut failed = 0;
        for cause in self
            .made
            .iter()
            .filter_map(|one| one.result.failure.as_deref())
        {
            failed += 1;
            if !causes.contains(&cause) {
                causes.push(cause);
            }
        }
        (failed > 0).then(|| format!("{failed} failed: {}", causes.join("; ")))
    }

    /// A row without figures, of what `launches` were between.
    fn bare(&self, population: Population, launches: &[Repetition<'_>]) -> ResultRow {
        let factors = &self.cell.factors;
        let (step, quantity, phase) = population;
        let mut pairs = launches
            .iter()
            .map(|one| (&one.launch.src, &one.launch.dst));
        let one_pair = pairs
            .next()
            .filter(|first| pairs.all(|pair| pair == *first));
        ResultRow {
            probe: factors.probe.clone(),
            layer: factors.layer,
            path: factors.path.clone(),
            method: factors.method.clone(),
            knobs: factors.knobs.clone(),
            mode: factors.mode.clone(),
            wait: factors.wait.clone(),
            network: factors.network.clone(),
            testbed: factors.testbed,
            profile: factors.profile.clone(),
            load: factors.load.clone(),
            src: one_pair.map(|(src, _)| src.clone()),
            dst: one_pair.map(|(_, dst)| dst.clone()),
            size_bytes: (factors.size_bytes > 0).then_some(factors.size_bytes),
            phase: Some(phase),
            step,
            cell: self.cell.id.clone(),
            launches: 0,
            set_aside: self.set_aside,
            samples: 0,
            quantity,
            min: None,
            p50: None,
            p90: None,
            p99: None,
            p999: None,
            max: None,
            mean: None,
            ci95_low: None,
            ci95_high: None,
            touched_share: None,
            undisturbed_p50: None,
            undisturbed_low: None,
            undisturbed_high: None,
            status: Status::Failed,
            reason: None,
            state: State::NotMeasured,
            doubts: Vec::new(),
            why: None,
            backpressure: self.network().and_then(|network| network.backpressure),
            verdict: None,
        }
    }
}
