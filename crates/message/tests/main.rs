//! The tests of messages from outside, in one program: it links once.

mod join;
mod oracle;

/// A port that nobody takes before it is bound: the sockets of other tests are at 127.0.0.1, from which those that dial come too.
fn port() -> std::net::SocketAddr {
    let [.., high, low] = std::process::id().to_be_bytes();
    let own = std::net::Ipv4Addr::new(127, 78, high, low);
    let listener = std::net::TcpListener::bind((own, 0)).unwrap();
    listener.local_addr().unwrap()
}
