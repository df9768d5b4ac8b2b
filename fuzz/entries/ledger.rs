//! A ledger file: header, records, end.

use sonde_link::SiteSpec;
use sonde_link::ledger::{Header, Reader, Writer};

pub fn run(bytes: &[u8]) {
    if let Ok(reader) = Reader::new(bytes) {
        let count = reader.count();
        assert!(
            count <= bytes.len(),
            "{count} entries of {} bytes",
            bytes.len()
        );
    }
    // A header that is right, which a fuzzer finds rarely: version, ports, length, seed, network.
    let header = Header {
        site: SiteSpec::single(
            sonde_link::named("wire").expect("it is in the catalogue"),
            2,
        ),
        seed: 1,
    };
    let mut whole = Vec::new();
    Writer::new(&mut whole, &header).expect("memory takes all");
    whole.extend_from_slice(bytes);
    for entry in Reader::new(whole.as_slice()).expect("the header is right") {
        let _ = entry;
    }
}
