//! Doors for the fuzz targets: what reads frames and records of other ranks, and is private.
//!
//! Model:   the engine of rank 0 has receives and sends posted; frames of rank 1 come as bytes, until one is refused.
//! Checked: the fuzz target `native_frames`.

use crate::letters::Letter;
use crate::native::engine::{Engine, Limits};
use crate::native::frame::{HEAD_BYTES, Head};
use crate::native::matching::{Envelope, Pattern};
use crate::native::operation::{Action, Place};
use crate::native::peer::Target;
use crate::native::record;

const LIMITS: Limits = Limits {
    eager_bytes: 64,
    window_bytes: 160,
    envelopes: 6,
};
const ROOM: usize = 100;

/// A stream of frames from rank 1, for rank 0.
pub fn frames(mut bytes: &[u8]) {
    let mut engine = Engine::new(0, 2, LIMITS);
    for tag in 0..3 {
        let (source, any) = (Some(1), (tag < 2).then_some(tag));
        let pattern = Pattern {
            context: 0,
            source,
            tag: any,
        };
        engine.post_recv((Place::Own, 0), pattern, ROOM);
        let envelope = Envelope {
            context: 0,
            source: 0,
            tag,
        };
        // One that fits, and two that wait for a rendezvous.
        engine.post_send((Place::Own, 0), 1, envelope, (50 * tag as usize, 0));
    }
    while let Some((head, rest)) = bytes.split_first_chunk::<HEAD_BYTES>() {
        bytes = rest;
        let Some(head) = Head::read(head) else {
            return;
        };
        let Ok(landing) = engine.on_head(1, head) else {
            return;
        };
        assert!(
            landing.keep as u64 <= head.body(),
            "more is kept than comes"
        );
        let come = usize::try_from(head.body()).map_or(bytes.len(), |body| body.min(bytes.len()));
        let (body, rest) = bytes.split_at(come);
        bytes = rest;
        if (come as u64) < head.body() {
            return;
        }
        let part = &body[..landing.keep];
        match landing.target {
            Target::Of(op) => assert!(part.len() as u64 <= engine.op(op).room, "beyond its room"),
            Target::Unexpected(kept) => engine.payload(kept).copy_from_slice(part),
            Target::Pair => engine.peer(1).inbound.pair[..part.len()].copy_from_slice(part),
            Target::Text => engine.peer(1).inbound.text.copy_from_slice(part),
        }
        if engine.on_body(1, landing).is_err() {
            return;
        }
        while let Some(action) = engine.actions.pop_front() {
            match action {
                Action::Fill { op, kept } => engine.on_filled(op, kept),
                Action::Pull(op) => engine.on_pulled(op, true),
            }
        }
        while engine.front(1).is_some() {
            engine.on_sent(1);
        }
    }
}

/// What ranks say while they meet.
pub fn records(mut bytes: &[u8]) {
    while let Ok(text) = record::read_record(&mut bytes) {
        let _ = record::said(&text);
        let mut again = Vec::new();
        record::write_record(&mut again, &text).expect("memory takes all");
        assert_eq!(record::read_record(&mut &again[..]).ok(), Some(text));
    }
}

/// A letter among four ranks.
pub fn letter(bytes: &[u8]) {
    if let Ok(letter) = Letter::of_bytes(bytes.to_vec(), 4) {
        assert_eq!(letter.into_bytes(), bytes, "it is sent as it came");
    }
}
