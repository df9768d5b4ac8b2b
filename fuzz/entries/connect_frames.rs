//! What agents that come back and relays say: pieces of a trunk, hellos, welcomes, tokens.

pub fn run(bytes: &[u8]) {
    sonde_fleet::fuzz::connect(bytes);
}
