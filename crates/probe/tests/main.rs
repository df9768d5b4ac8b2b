//! The tests of agents and measurements from outside, in one program: it links once.

mod agents;
mod conversation;
mod hostile;
mod library;
mod method;
mod pattern;
mod processes;
mod program;
mod trouble;

/// What measures: one at a time.
#[path = "."]
mod alone {
    mod load;
    mod moments;
    mod rate;
}
