//! The tests of the virtual clock from outside, in one program: it links once.

mod ceilings;
mod clients;
mod determinism;
mod discard;
mod faults;
mod gaps;
mod incast;
mod loss;
mod marks;
mod parity;
mod scenario;
mod table;
