//! The tests of fleets from outside, in one program: it links once.

mod connect;
mod local;
mod stage;

/// With a lab, and nothing measured: three at a time.
#[path = "."]
mod paired {
    mod lab_ssh;
    mod lab_virtual_machine;
}

/// What measures: one at a time.
#[path = "."]
mod alone {
    mod lab_fleet;
}
