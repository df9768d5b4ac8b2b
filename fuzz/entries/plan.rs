//! A plan of the user's: what is taken can be laid out as text and read back.

pub fn run(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        sonde_cli::fuzz::plan(text);
    }
}
