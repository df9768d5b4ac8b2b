//! Datagrams at data ports: of conversations, patterns, circuits and loads.

pub fn run(bytes: &[u8]) {
    sonde_probe::fuzz::datagram(bytes);
    sonde_probe::fuzz::load(bytes);
}
