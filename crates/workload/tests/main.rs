//! The tests of kernels from outside, in one program: it links once. What they allocate counts a program of its own.

mod memory;
mod messages;
