//! What an agent and its orchestrator read from each other: frames, requests, answers.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sonde_probe::{Answer, Request, frame};

fuzz_target!(|bytes: &[u8]| {
    let mut from = bytes;
    while let Ok(Some(body)) = frame::read(&mut from) {
        assert!(body.len() <= bytes.len(), "more was read than there is");
        if let Ok(Request::Serve(serve)) = frame::parse(&body) {
            // Specifications that pass have bounded waits.
            if serve.spec.check().is_ok() {
                let _ = serve.spec.duration_max();
            }
        }
        if let Ok(answer) = frame::parse::<Answer>(&body) {
            // What was understood can be said again.
            frame::encode(&answer).unwrap();
        }
    }
    // Without the four bytes of a length, which a fuzzer finds rarely.
    let _ = frame::parse::<Request>(bytes);
    let _ = frame::parse::<Answer>(bytes);
});
