//! What can go wrong in a conversation: what, with which value, and the remedy.

use std::net::SocketAddr;
use std::time::Duration;

use crate::frame::FrameError;

/// The result of a conversation or a part of it.
pub type Result<T> = std::result::Result<T, Error>;

impl From<sonde_measure::Unmeasurable> for Error {
    fn from(sonde_measure::Unmeasurable { what, remedy }: sonde_measure::Unmeasurable) -> Self {
        Self::Unmeasurable { what, remedy }
    }
}

/// A conversation that gave no measurement.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The data channel failed.
    #[error(transparent)]
    Channel(#[from] sonde_channel::Error),
    /// The kernel refused something.
    #[error(transparent)]
    System(#[from] sonde_sys::Error),
    /// A frame of the control plane is malformed.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// Messages among ranks failed.
    #[error(transparent)]
    Message(#[from] sonde_message::Error),
    /// What cannot be measured.
    #[error("{what}")]
    Unmeasurable {
        /// What is wrong, with the value.
        what: String,
        /// What to ask for instead.
        remedy: &'static str,
    },
    /// A setting of the host that cannot be changed so.
    #[error("{what}")]
    Setting {
        /// What was refused, with the value.
        what: String,
        /// What to do about it.
        remedy: String,
    },
    /// A service of files failed.
    #[error("{what}")]
    Files {
        /// What, with whom.
        what: String,
        /// What to do about it.
        remedy: &'static str,
    },
    /// The serving side refused this peer.
    #[error("{peer} refused the connection: {reason}")]
    Refused {
        /// The serving side.
        peer: SocketAddr,
        /// Why.
        reason: String,
    },
    /// Nobody with the token came.
    #[error("no peer with the token came to {local} within {:.3} s; refused connections: {refused}{last}", waited.as_secs_f64())]
    NoPeer {
        /// The data port.
        local: SocketAddr,
        /// How long it was open.
        waited: Duration,
        /// How many came without it.
        refused: u64,
        /// The last one's story.
        last: String,
    },
    /// The orchestrator said or sent something else while a peer was awaited.
    #[error("the conversation was given up before a peer came")]
    Abandoned,
    /// What was measured at once with it failed.
    #[error("it was ended, since another one of the measurements at once failed")]
    Ended,
    /// What was received is not what was sent.
    #[error("integrity: {0}")]
    Integrity(String),
    /// The stream ended too early to be rated.
    #[error(
        "the stream lasted {window_ns} ns after its first second, which is too short to rate ({needed_ns} ns are needed)"
    )]
    TooShort {
        /// What there was.
        window_ns: u64,
        /// What is needed.
        needed_ns: u64,
    },
    /// What was to begin with others at an agreed time was not ready by then.
    #[error("it was ready {:.1} ms {}", *late_ns as f64 / 1e6, crate::begin::LATE)]
    Late {
        /// How much too late.
        late_ns: u64,
    },
    /// An agent ended.
    #[error("agent {agent} ended while {awaited} was awaited")]
    AgentGone {
        /// Its name.
        agent: String,
        /// What was awaited.
        awaited: &'static str,
    },
    /// An agent said nothing.
    #[error("agent {agent} said nothing for {:.3} s while {awaited} was awaited", waited.as_secs_f64())]
    AgentSilent {
        /// Its name.
        agent: String,
        /// What was awaited.
        awaited: &'static str,
        /// How long.
        waited: Duration,
    },
    /// An agent could not do its part.
    #[error("agent {agent}: {what}")]
    Agent {
        /// Its name.
        agent: String,
        /// What it said.
        what: String,
        /// Its advice.
        remedy: String,
    },
    /// An agent said what does not belong there.
    #[error("agent {agent} broke the protocol while {awaited} was awaited: {found}")]
    OutOfTurn {
        /// Its name.
        agent: String,
        /// What was awaited.
        awaited: &'static str,
        /// What came.
        found: String,
    },
    /// Both sides failed.
    #[error("{first}; {second}")]
    Both {
        /// What explains the other: the loss of an agent, or what the measuring side met.
        first: Box<Error>,
        /// The other side's story.
        second: Box<Error>,
    },
    /// The control plane to an agent broke.
    #[error("cannot {what} agent {agent}: {source}")]
    Link {
        /// Its name.
        agent: String,
        /// What was attempted.
        what: &'static str,
        /// The reason.
        source: std::io::Error,
    },
    /// The control plane broke.
    #[error("cannot {what}: {source}")]
    Control {
        /// What was attempted.
        what: String,
        /// The reason.
        source: std::io::Error,
    },
}

impl Error {
    /// Whether an agent is gone, as opposed to: it failed.
    pub fn lost(&self) -> bool {
        match self {
            Self::AgentGone { .. } | Self::AgentSilent { .. } | Self::Link { .. } => true,
            Self::Both { first, .. } => first.lost(),
            _ => false,
        }
    }

    /// The agent that failed or is gone, where it was one.
    pub fn agent(&self) -> Option<&str> {
        match self {
            Self::AgentGone { agent, .. }
            | Self::AgentSilent { agent, .. }
            | Self::Agent { agent, .. }
            | Self::OutOfTurn { agent, .. }
            | Self::Link { agent, .. } => Some(agent),
            Self::Both { first, .. } => first.agent(),
            _ => None,
        }
    }

    /// Two failures of one conversation, that which explains the other first.
    pub(crate) fn both(measuring: Self, serving: Self) -> Self {
        let (first, second) = if serving.lost() && !measuring.lost() {
            (serving, measuring)
        } else {
            (measuring, serving)
        };
        Self::Both {
            first: Box::new(first),
            second: Box::new(second),
        }
    }

    /// What a person can do about it.
    pub fn remedy(&self) -> String {
        let text = match self {
            Self::Channel(error) => error.remedy(),
            Self::System(_) => "look at what this host may do: `sonde doctor`",
            Self::Frame(_) | Self::OutOfTurn { .. } => {
                "give both hosts the same version of sonde, and its agents a clean stdio"
            }
            Self::Message(_) => "look at what the other ranks say, and at `sonde doctor`",
            Self::Unmeasurable { remedy, .. } | Self::Files { remedy, .. } => remedy,
            Self::Agent { remedy, .. } | Self::Setting { remedy, .. } => remedy,
            Self::Refused { .. } => {
                "let one orchestrator give both agents the same token and specification"
            }
            Self::NoPeer { .. } => {
                "check that the measuring host can reach this address and port, and that nothing on the way changes its own (NAT)"
            }
            Self::Abandoned => "see the report of the measuring side",
            Self::Ended => "see what became of the others",
            Self::Integrity(_) => {
                "do not trust this network or these settings: bytes were lost or changed"
            }
            Self::TooShort { .. } => {
                "ask for a longer budget, or look at why the network stood still"
            }
            Self::Late { .. } => {
                "look at what else these hosts do: they have no time to make ready"
            }
            Self::AgentGone { .. } => {
                "look at the agent's standard error, and whether it was killed"
            }
            Self::AgentSilent { .. } => "check that the host is alive and not overloaded",
            Self::Both { first, .. } => return first.remedy(),
            Self::Link { .. } | Self::Control { .. } => "check that the agent still runs",
        };
        text.to_string()
    }
}
