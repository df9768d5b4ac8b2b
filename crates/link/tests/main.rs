//! The tests of the models from outside, in one program: it links once.

mod atm;
mod bus;
mod campus;
mod catalogue;
mod circuits;
mod credit;
mod crossbar;
mod drive;
mod faults;
mod fragments;
mod hosted;
mod loads;
mod properties;
mod queues;
mod router;
mod sci;
mod several;
mod site;
mod stages;
mod times;
mod token;
mod topology;
mod vlan;
