//! The kernels in the form of the studies: a line a kernel and load, a column a place, ours beside what a paper prints.
//!
//! Model:   a place is hosts, ranks and path. Times are over the reference of their kernel, and a paper's over its own; where a
//!          kernel has no reference all are in seconds, without a paper's. What runs on one host uses no network: idle, it stands
//!          in the lines of every network.
//! Source:  the form of Table 2 of the UPC study (U33, U34).
//! Units:   times the reference, or seconds.
//! Checked: `places_stand_beside_each_other`, `one_place_is_no_table`.

use sonde_measure::Number;

use super::{Sheet, scaled, wrapped};
use crate::kernels::{KernelRow, PrintedElsewhere};
use sonde_units::plain;

const KEYS: [&str; 4] = ["kernel", "size", "network", "load"];
const SIZE: usize = 1;
const NETWORK: usize = 2;
const LOAD: usize = 3;

/// Where a kernel runs.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    hosts: u64,
    ranks: u64,
    by: String,
}

impl Place {
    fn of(row: &KernelRow) -> Self {
        let (hosts, ranks) = (row.hosts, row.ranks);
        // One rank alone uses no library.
        let by = match ranks {
            1 => String::new(),
            _ => row.by(),
        };
        Self { hosts, ranks, by }
    }

    /// The head of its column; ranks are named where places differ in them.
    fn head(&self, name_ranks: bool) -> String {
        let hosts = match self.hosts {
            1 => "1 host".to_string(),
            hosts => format!("{hosts} hosts"),
        };
        match (self.ranks, name_ranks) {
            (1, _) => "one rank\nalone".into(),
            (ranks, true) => format!("{hosts}, {ranks} ranks\n{}", plain(&self.by)),
            (_, false) => format!("{hosts}\n{}", plain(&self.by)),
        }
    }
}

/// A line of the table.
#[derive(Debug, Clone, PartialEq)]
struct Problem<'r> {
    kernel: &'r str,
    class: &'r str,
    network: &'r str,
    load: Option<&'r str>,
}

impl<'r> Problem<'r> {
    fn of(row: &'r KernelRow) -> Self {
        Self {
            kernel: &row.kernel,
            class: &row.class,
            network: &row.network,
            load: row.load.as_deref(),
        }
    }

    /// Its row at a place. What is idle on one host may have run beside another network.
    fn at(&self, rows: &'r [KernelRow], place: &Place) -> Option<&'r KernelRow> {
        let mut own = rows.iter().filter(|row| Place::of(row) == *place);
        let here = own.clone().find(|row| Self::of(row) == *self);
        let anywhere = Self {
            load: None,
            ..self.clone()
        };
        here.or_else(|| {
            own.find(|row| {
                let same = Self {
                    network: self.network,
                    ..Self::of(row)
                };
                row.hosts == 1 && self.load.is_none() && same == anywhere
            })
        })
    }
}

/// The table with its legend; `None` where there is one place alone.
pub(super) fn places(
    rows: &[KernelRow],
    elsewhere: &[PrintedElsewhere],
    width: usize,
) -> Option<String> {
    let mut all: Vec<Place> = Vec::new();
    for row in rows {
        if !all.contains(&Place::of(row)) {
            all.push(Place::of(row));
        }
    }
    if all.len() < 2 {
        return None;
    }
    all.sort_by_key(|place| (place.hosts, place.ranks));
    let problems = problems(rows);
    let over = rows.iter().all(|row| row.of_reference.is_some());
    let mut sheet = Sheet {
        heads: KEYS.map(Into::into).to_vec(),
        lines: problems.iter().map(line).collect(),
        keys: KEYS.len(),
        first: 0,
        words: KEYS.len(),
        loose: false,
    };
    for place in &all {
        column(&mut sheet, rows, &problems, place, &all, over);
    }
    sheet.first = (sheet.heads.len() - KEYS.len()).div_ceil(2);
    let same =
        |of: fn(&Problem<'_>) -> String| problems.iter().all(|one| of(one) == of(&problems[0]));
    sheet.leave_out_marked([
        (LOAD, problems.iter().all(|one| one.load.is_none())),
        (NETWORK, same(|one| one.network.into())),
        (SIZE, same(|one| one.class.into())),
    ]);
    let legend = legend(rows, elsewhere, over);
    Some(format!(
        "{}\n\n{}",
        sheet.text(width),
        wrapped(&legend, width, "")
    ))
}

/// The lines: kernel by kernel, of each network, by the level of the load. Networks of which single hosts alone are known
/// have none where others are.
fn problems(rows: &[KernelRow]) -> Vec<Problem<'_>> {
    let spread = rows.iter().any(|row| row.hosts > 1);
    let is_line = |row: &&KernelRow| {
        let of_network = |other: &KernelRow| other.hosts > 1 && other.network == row.network;
        !spread || rows.iter().any(of_network)
    };
    let mut all: Vec<(Problem<'_>, f64)> = Vec::new();
    for row in rows.iter().filter(is_line) {
        if all.iter().all(|(known, _)| *known != Problem::of(row)) {
            all.push((Problem::of(row), row.level.0));
        }
    }
    let order = all.clone();
    let first = |of: &dyn Fn(&Problem<'_>) -> bool| order.iter().position(|(one, _)| of(one));
    all.sort_by(|(one, level), (other, others)| {
        let rank = |problem: &Problem<'_>| {
            let kernel =
                first(&|known| (known.kernel, known.class) == (problem.kernel, problem.class));
            (kernel, first(&|known| known.network == problem.network))
        };
        let places = rank(one).cmp(&rank(other));
        places.then(level.total_cmp(others))
    });
    all.into_iter().map(|(problem, _)| problem).collect()
}

fn line(problem: &Problem<'_>) -> Vec<String> {
    let Problem {
        kernel,
        class,
        network,
        load,
    } = problem;
    [kernel, class, network, &load.unwrap_or("idle")]
        .map(|text| plain(text))
        .to_vec()
}

/// Adds the column of a place, and beside it what is printed of it, if anything is.
fn column(
    sheet: &mut Sheet,
    rows: &[KernelRow],
    problems: &[Problem<'_>],
    place: &Place,
    all: &[Place],
    over: bool,
) {
    let found: Vec<Option<&KernelRow>> = problems.iter().map(|one| one.at(rows, place)).collect();
    let several = |other: &Place| other.ranks > 1 && other.ranks != place.ranks;
    sheet.heads.push(place.head(all.iter().any(several)));
    for (line, row) in sheet.lines.iter_mut().zip(&found) {
        let value = row.and_then(|row| match over {
            true => Some(row.of_reference?.value.0),
            false => Some(row.time_ns.0 / 1e9),
        });
        line.push(scaled(value, 1.0, if over { 3 } else { 4 }));
    }
    let printed = |row: &Option<&KernelRow>| Some((*row)?.printed.as_ref()?.of_reference?.0);
    if over && found.iter().any(|row| printed(row).is_some()) {
        sheet.heads.push("\nprinted".into());
        for (line, row) in sheet.lines.iter_mut().zip(&found) {
            line.push(scaled(printed(row), 1.0, 3));
        }
    }
}

fn legend(rows: &[KernelRow], elsewhere: &[PrintedElsewhere], over: bool) -> String {
    if !over {
        return "Kernels by place, s: medians; their intervals are below.".into();
    }
    let mut references: Vec<&str> = Vec::new();
    for row in rows {
        if let Some(text) = row
            .reference
            .as_deref()
            .filter(|text| !references.contains(text))
        {
            references.push(text);
        }
    }
    let mut text = format!(
        "Kernels by place: relative to the idle time of {}; intervals are below.",
        plain(&references.join(", or "))
    );
    let printed = rows.iter().find_map(|row| row.printed.as_ref());
    if let Some(printed) = printed {
        let own = elsewhere
            .iter()
            .find(|one| one.of_reference == Some(Number(1.0)));
        let own = own.map_or(String::new(), |one| format!(", {}", one.what));
        text += &format!(
            " Printed: {}, relative to its own reference{}.",
            plain(&printed.cite),
            plain(&own)
        );
    }
    text + match printed {
        Some(_) => " -: not measured, or not printed.",
        None => " -: not measured.",
    }
}
