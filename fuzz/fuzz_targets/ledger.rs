//! A ledger file: header, records, end.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sonde_link::ledger::Reader;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(reader) = Reader::new(bytes) {
        let count = reader.count();
        assert!(count <= bytes.len(), "{count} entries of {} bytes", bytes.len());
    }
    // A header that is right, which a fuzzer finds rarely: version, ports, length, seed, network.
    let spec = sonde_link::named("wire").unwrap();
    let header = sonde_link::ledger::Header {
        network: spec,
        ports: 2,
        seed: 1,
    };
    let mut whole = Vec::new();
    sonde_link::ledger::Writer::new(&mut whole, &header).unwrap();
    whole.extend_from_slice(bytes);
    for entry in Reader::new(whole.as_slice()).unwrap() {
        let _ = entry;
    }
});
