//! The tests of adapters and of the libraries behind them, in one program: it links once.

mod libraries;
mod loading;
