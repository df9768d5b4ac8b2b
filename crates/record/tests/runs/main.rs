//! Runs as data: their rows, their store and their exports.

mod export;
mod killed;
mod page;
mod rows;
mod sample;
mod store;
