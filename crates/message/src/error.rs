//! What can go wrong among ranks.

use std::time::Duration;

/// The result of a call of a messenger.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A rank ended, or its way is broken.
    #[error("rank {rank} is gone while {during}: {why}")]
    Lost {
        /// Which, in the world.
        rank: usize,
        /// What was under way.
        during: String,
        /// What is known of it.
        why: String,
    },
    /// Nothing moved for too long.
    #[error(
        "nothing moved for {timeout:?} while {during}: {}, and reachable? on a network so slow send less at once: smaller messages",
        suspects(*rank)
    )]
    Silent {
        /// Who was waited for, in the world; null where it may be any.
        rank: Option<usize>,
        /// What was under way.
        during: String,
        /// For how long.
        timeout: Duration,
    },
    /// A message is longer than the room for it.
    #[error("a message of {bytes} bytes with tag {tag} from rank {from} has room for {room} only")]
    Truncated {
        /// The sender.
        from: usize,
        /// Its tag.
        tag: u32,
        /// The message's bytes.
        bytes: usize,
        /// The room's.
        room: usize,
    },
    /// An argument that cannot be.
    #[error("{what} is {value}, and must be {wanted}")]
    Argument {
        /// Which.
        what: &'static str,
        /// What it was.
        value: String,
        /// What it may be.
        wanted: String,
    },
    /// It has no such thing.
    #[error("{library} has no {what}")]
    Missing {
        /// Who.
        library: String,
        /// What.
        what: String,
    },
    /// The library or the kernel refused.
    #[error("{library}: {what} failed: {why}")]
    Refused {
        /// Who.
        library: String,
        /// What was attempted.
        what: String,
        /// What it said.
        why: String,
    },
}

/// Whose running is in question, as the begin of a question.
fn suspects(rank: Option<usize>) -> String {
    rank.map_or_else(
        || "are all other ranks running".into(),
        |rank| format!("is rank {rank} running"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_silent_is_named_where_it_is_known() {
        let said = |rank| {
            let (during, timeout) = ("sending".to_string(), Duration::from_secs(3));
            let error = Error::Silent {
                rank,
                during,
                timeout,
            };
            error.to_string()
        };
        assert_eq!(
            said(Some(1)),
            "nothing moved for 3s while sending: is rank 1 running, and reachable? on a network so slow send less at once: \
             smaller messages"
        );
        assert!(said(None).contains("are all other ranks running, and reachable?"));
    }
}
