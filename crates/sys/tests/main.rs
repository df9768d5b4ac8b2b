//! The tests of what the kernel gives, in one program: it links once.

mod fresh;
mod gate;
mod namespace;
mod netlink;
mod xdp;
