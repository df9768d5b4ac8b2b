//! What an agent and its orchestrator read from each other: frames, requests, answers.

use sonde_probe::{Answer, Request, frame};

pub fn run(bytes: &[u8]) {
    let mut from = bytes;
    while let Ok(Some(body)) = frame::read(&mut from) {
        assert!(body.len() <= bytes.len(), "more was read than there is");
        look(&body);
    }
    // Without the four bytes of a length, which a fuzzer finds rarely.
    look(bytes);
}

fn look(body: &[u8]) {
    match frame::parse::<Request>(body) {
        // Specifications and jobs that pass have bounded waits.
        Ok(Request::Serve(serve)) if serve.spec.check().is_ok() => {
            let _ = serve.spec.duration_max();
        }
        _ => {}
    }
    if let Ok(text) = std::str::from_utf8(body) {
        if let Ok(job) = sonde_probe::library::Job::parse(text) {
            if job.check().is_ok() {
                let _ = (job.timeout(), job.duration_max(), job.text());
            }
        }
    }
    if let Ok(answer) = frame::parse::<Answer>(body) {
        // What was understood can be said again.
        frame::encode(&answer).expect("it was a frame");
    }
}
