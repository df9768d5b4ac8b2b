//! What each page holds.
//!
//! Checked: `tests/serve.rs`.

use std::collections::BTreeSet;

use sonde_measure::{Run, RunState};
use sonde_record::StoreError;
use sonde_report::{
    ComparedRuns, HistoryOfRuns, Limits, ListedRun, PageData, RunList, Served, View, compare, page,
};

use super::reads::Reads;
use super::reply::{Reply, Status};
use super::request::Place;
use crate::history;
use crate::report::listed;

/// A run that has not ended is shown anew after so many seconds.
const REFRESH_S: u32 = 10;

/// The page of a place, or why there is none.
pub fn reply(place: Place, reads: &Reads) -> Reply {
    let made = match place {
        Place::Runs => list(reads),
        Place::Run(text) => run(text, reads),
        Place::Compare { from, to, ignore } => compared([from, to], ignore, reads),
        Place::History { name } => past(name, reads),
    };
    made.unwrap_or_else(|why| why)
}

fn list(reads: &Reads) -> Result<Reply, Reply> {
    let runs = reads.of(listed).map_err(|error| unread(&error))?;
    let is_open = runs.iter().any(|run| run.state == RunState::Open);
    let store = reads.out().display().to_string();
    of(PageData::Runs(&RunList::of(store, runs)), is_open)
}

fn run(text: String, reads: &Reads) -> Result<Reply, Reply> {
    let run = load(text, reads)?;
    let is_open = run.head.state == RunState::Open;
    of(PageData::Run(&View::of(&run)), is_open)
}

fn compared(texts: [String; 2], ignore: BTreeSet<String>, reads: &Reads) -> Result<Reply, Reply> {
    let [from, to] = texts;
    let (a, b) = (load(from, reads)?, load(to, reads)?);
    let ids = [a.head.id.clone(), b.head.id.clone()];
    let read = move |store: &_| {
        let [a, b] = &ids;
        Ok((history::others(store, [a, b])?, listed(store)?))
    };
    let (others, all) = reads.of(read).map_err(|error| unread(&error))?;
    let one = |id: &str| {
        let id = id.to_owned();
        reads.of(move |store| store.load(&id))
    };
    let past = history::chronicle(&a, &others, one).map_err(|error| unread(&error))?;
    let limits = Limits {
        ignore,
        ..Limits::default()
    };
    let found = compare(&a, &b, &past, &limits);
    let found = found.map_err(|error| Reply::error(Status::Malformed, error))?;
    let is_open = [&a, &b].iter().any(|run| run.head.state == RunState::Open);
    let names = [&a, &b].map(|run| name_of(&all, run));
    let data = ComparedRuns::of([&a, &b], names, found, &limits);
    of(PageData::Compared(&data), is_open)
}

fn past(name: Option<String>, reads: &Reads) -> Result<Reply, Reply> {
    let wanted = name.clone();
    let read = move |store: &_| history::of_name(store, wanted.as_deref(), history::LAST);
    let ids = reads.of(read).map_err(|error| unread(&error))?;
    if ids.is_empty() {
        let why = history::nothing(name.as_deref(), reads.out());
        return Err(Reply::error(Status::Absent, why));
    }
    let mut chronicle = sonde_report::Chronicle::default();
    for id in ids {
        chronicle.add(&load(id, reads)?);
    }
    let history = chronicle.history(Limits::default().threshold_per_mille);
    of(PageData::History(&HistoryOfRuns::of(name, history)), false)
}

fn name_of(all: &[ListedRun], run: &Run) -> Option<String> {
    let one = all.iter().find(|one| one.run == run.head.id);
    one.and_then(|one| one.name.clone())
}

/// The run that a text names.
fn load(text: String, reads: &Reads) -> Result<Run, Reply> {
    let read = move |store: &sonde_record::Store| {
        let id = store.find(&text)?;
        store.load(&id)
    };
    reads.of(read).map_err(|error| unread(&error))
}

fn of(data: PageData<'_>, is_open: bool) -> Result<Reply, Reply> {
    let served = match is_open {
        true => Served::Every(REFRESH_S),
        false => Served::Once,
    };
    let page = page(data, served).map_err(|error| Reply::error(Status::Failed, error))?;
    Ok(Reply::page(page, is_open.then_some(REFRESH_S)))
}

/// Why the store was not read.
fn unread(error: &StoreError) -> Reply {
    let status = match error {
        StoreError::NoRun { .. } | StoreError::Several { .. } => Status::Absent,
        StoreError::Locked { .. } | StoreError::Absent { .. } => Status::Unavailable,
        StoreError::ReadOnly { path, .. } => {
            let why = format!(
                "A killed process left a write to {} half done, and here nothing is written: `sonde report list` rolls it back.",
                path.display()
            );
            return Reply::error(Status::Unavailable, why);
        }
        _ => Status::Failed,
    };
    Reply::error(status, error)
}
