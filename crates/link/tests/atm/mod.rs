//! ATM through the whole network: discard, contracts, circuits, LAN emulation, trunks and rates.

mod abr;
mod circuits;
mod discard;
mod lane;
mod rates;
mod rig;
mod tables;
mod traffic;
mod trunks;
