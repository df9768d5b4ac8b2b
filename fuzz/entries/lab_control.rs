//! What comes over a lab's sockets, frames of its hosts, and the words of rsh.

pub fn run(bytes: &[u8]) {
    sonde_lab::fuzz::message(bytes);
    if let [hosts, frame @ ..] = bytes {
        sonde_lab::fuzz::frame(frame, *hosts);
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        sonde_lab::fuzz::words(text);
    }
}
