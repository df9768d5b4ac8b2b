//! The tests of messages from outside, in one program: it links once.

mod join;
mod oracle;
