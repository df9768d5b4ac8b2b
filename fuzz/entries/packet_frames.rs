//! Frames of the paths packet and xdp.

pub fn run(bytes: &[u8]) {
    sonde_channel::fuzz::frame(bytes);
}
