//! What is said of hosts, ways and fabrics by the matrix of all pairs.
//!
//! Units:   nanoseconds of half a round trip, bits a second, parts of one; how many times slower.
//! Checked: the tests of `matrix::blame`, `matrix::way` and `matrix::evidence`.

use super::Words;
use crate::format::{rate, share, time};
use crate::matrix::{Kind, Stage};

/// Which streams of a host are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sides {
    To,
    From,
    Both,
}

impl Sides {
    fn words(self) -> &'static str {
        match self {
            Self::To => "to",
            Self::From => "from",
            Self::Both => "to and from",
        }
    }
}

/// A count over the segments of a host, beside the usual host's.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Counted {
    pub count: u64,
    pub segments: u64,
    pub part: f64,
    /// At 95 %; `None` where the count is too small for one.
    pub ends: Option<(f64, f64)>,
    /// The part of the usual host.
    pub usual: f64,
}

impl Counted {
    pub(crate) fn words(&self) -> String {
        let interval = self.ends.map_or_else(String::new, |(low, high)| {
            format!(" [{} to {}]", share(low), share(high))
        });
        format!(
            "{}{interval} of segments ({} of {}), of the usual host's {}",
            share(self.part),
            self.count,
            self.segments,
            share(self.usual)
        )
    }
}

/// What is wrong, and with whom.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Bad {
    /// Most pairs of a host gave nothing.
    Unreached {
        host: String,
        failed: usize,
        pairs: usize,
    },
    Reorders {
        host: String,
        sides: Sides,
        counted: Option<Counted>,
    },
    BlackHole {
        host: String,
        sides: Sides,
    },
    Window {
        host: String,
        /// The part of the time.
        held: f64,
        times: f64,
    },
    /// Lost while both directions are busy, and one way alone.
    Duplex {
        host: String,
        sides: Sides,
        both: Option<Counted>,
        alone: Option<Counted>,
        times_both: f64,
        times_alone: f64,
    },
    Loss {
        host: String,
        sides: Sides,
        counted: Option<Counted>,
    },
    SlowStreams {
        host: String,
        sides: Sides,
        times: f64,
    },
    SlowBothWays {
        host: String,
        times_both: f64,
        times_alone: f64,
    },
    SlowMessages {
        host: String,
        times: f64,
    },
    /// Other programs take so much of a CPU, and so much on the usual host.
    Busy {
        host: String,
        part: f64,
        usual: f64,
    },
    Fabric {
        network: String,
        suspects: Vec<Suspect>,
    },
    Unsteady {
        standing: usize,
        measured: usize,
    },
    /// One way; the way back is so many times slower, where it was measured.
    Direction {
        src: String,
        dst: String,
        kind: Kind,
        times: f64,
        back: Option<f64>,
    },
    Link {
        hosts: [String; 2],
        kind: Kind,
        times: f64,
    },
}

/// Who was bad while others flowed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Suspect {
    Host(String),
    OddPair(String, String),
}

fn counted(counted: &Option<Counted>) -> String {
    counted.as_ref().map_or_else(String::new, Counted::words)
}

fn worse(kind: Kind, times: f64) -> String {
    let what = match kind {
        Kind::Latency => "latency",
        Kind::Stream => "rate",
        Kind::Duplex => "rate while both directions are busy",
    };
    format!("{what} {times:.1} times worse than between other hosts")
}

fn fabric(network: &str, suspects: &[Suspect]) -> String {
    let mut names: Vec<String> = suspects
        .iter()
        .map(|suspect| match suspect {
            Suspect::Host(host) => host.clone(),
            Suspect::OddPair(src, dst) => format!("{src} to {dst}"),
        })
        .collect();
    names.dedup();
    let were = if names.len() == 1 { "was" } else { "were" };
    format!(
        "The fabric of {network} does not carry all at once: {} {were} bad twice while others flowed, and good alone.",
        names.join(", ")
    )
}

impl Bad {
    fn sentence(&self) -> String {
        match self {
            Self::Unreached {
                host,
                failed,
                pairs,
            } => {
                format!("{host} is bad: {failed} of its {pairs} pairs gave no result.")
            }
            Self::Reorders {
                host,
                sides,
                counted: of,
            } => format!(
                "{host} is bad: segments {} it are reordered: {}.",
                sides.words(),
                counted(of)
            ),
            Self::BlackHole { host, sides } => format!(
                "{host} is bad: small messages reach it and streams {} it stand still: large frames vanish in transit, an MTU black hole.",
                sides.words()
            ),
            Self::Window { host, held, times } => format!(
                "{host} is bad: its receive window holds streams to it {} of the time, and they are {times:.1} times slower than those of others.",
                share(*held)
            ),
            Self::Duplex {
                host,
                sides,
                both,
                alone,
                times_both,
                times_alone,
            } => format!(
                "{host} is bad: frames {} it are lost while both directions are busy, {}; in one direction alone {}. Its streams are \
                 {times_both:.1} times slower than those of others while both directions are busy, {times_alone:.1} times in one \
                 direction.",
                sides.words(),
                counted(both),
                counted(alone)
            ),
            Self::Loss {
                host,
                sides,
                counted: of,
            } => format!(
                "{host} is bad: frames {} it are lost, {}.",
                sides.words(),
                counted(of)
            ),
            Self::SlowStreams { host, sides, times } => format!(
                "{host} is bad: streams {} it are {times:.1} times slower than those of others.",
                sides.words()
            ),
            Self::SlowBothWays {
                host,
                times_both,
                times_alone,
            } => format!(
                "{host} is bad: its streams are {times_both:.1} times slower than those of others while both directions are busy, \
                 {times_alone:.1} times in one direction, and no more are lost."
            ),
            Self::SlowMessages { host, times } => {
                format!("{host} is bad: its latency is {times:.1} times that of others.")
            }
            Self::Busy { host, part, usual } => format!(
                "{host} is busy: other programs took {part:.2} of a CPU while it was measured, on the usual host {usual:.2}."
            ),
            Self::Fabric { network, suspects } => fabric(network, suspects),
            Self::Unsteady { standing, measured } => format!(
                "{standing} of {measured} pairs stand out and no host explains them: hosts or fabric are too unsteady to distinguish \
                 single paths."
            ),
            Self::Direction {
                src,
                dst,
                kind,
                times,
                back,
            } => {
                let good = back.map_or(String::new(), |times| {
                    format!(", and the reverse direction is good ({times:.1} times)")
                });
                format!(
                    "The direction from {src} to {dst} is bad: {}{good}, while both hosts are good with others.",
                    worse(*kind, *times)
                )
            }
            Self::Link {
                hosts: [a, b],
                kind,
                times,
            } => format!(
                "The path between {a} and {b} is bad: {}, while both hosts are good with others.",
                worse(*kind, *times)
            ),
        }
    }

    fn remedy(&self) -> String {
        match self {
            Self::Unreached { host, .. } => format!("check that {host} is up and answers"),
            Self::Reorders { host, .. } => format!(
                "look at how {host}'s frames are spread: several bonded links, a receive queue per packet, a driver that coalesces"
            ),
            Self::BlackHole { host, .. } => format!(
                "compare the MTU of {host}, of its switch port and of its peers: `ip link`, `ping -M do -s 1472 {host}`"
            ),
            Self::Window { host, .. } => {
                format!("raise net.ipv4.tcp_rmem on {host} to what the others have")
            }
            Self::Duplex { host, .. } => format!(
                "the two ends of {host}'s line may not agree on its duplex: `ethtool` on {host}, and the switch's port"
            ),
            Self::Loss { host, .. } => format!(
                "look at {host}'s errors and drops (`ethtool -S`, `ip -s link`), its cable, optics and switch port"
            ),
            Self::SlowStreams { host, .. } => format!(
                "look at {host}'s line rate (`ethtool`), its CPU's clock and load, and its TCP buffers"
            ),
            Self::SlowBothWays { host, .. } => format!(
                "look at what both directions of {host} share: its CPU, its bus, a half-duplex medium"
            ),
            Self::SlowMessages { host, .. } => format!(
                "look at {host}'s CPU (load, clock, power saving), its interrupts (`ethtool -c`), and the path to it"
            ),
            Self::Busy { host, .. } => format!("see what runs on {host}: `top`, and end or move it"),
            Self::Fabric { .. } => "look at what these paths share: a trunk, a switch's buffers, how flows are spread over equal paths".into(),
            Self::Unsteady { .. } => {
                "measure again when the hosts are quiet, or longer, without `--quick`".into()
            }
            Self::Direction { .. } | Self::Link { .. } => {
                "suspect the path between the two, not the hosts: the route, a trunk between switches, a flow's queue".into()
            }
        }
    }
}

/// A median over pairs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Figure {
    pub middle: f64,
    /// By ranks at 95 %, from six pairs on.
    pub ends: Option<(f64, f64)>,
    pub pairs: usize,
}

impl Figure {
    fn words(&self, kind: Kind) -> String {
        let show = |value: f64| match kind {
            Kind::Latency => time(value),
            Kind::Stream | Kind::Duplex => rate(value),
        };
        let ends = self.ends.map_or_else(String::new, |(low, high)| {
            format!(" [{} to {}]", show(low), show(high))
        });
        let pairs = match self.pairs {
            1 => "1 pair".to_owned(),
            count => format!("{count} pairs"),
        };
        format!("{}{ends} ({pairs})", show(self.middle))
    }
}

/// What was measured of one kind: of whom it is about at each stage, of the others, and alone of pairs that are good.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OfKind {
    pub kind: Kind,
    pub stages: Vec<(Stage, Figure)>,
    pub others: Option<Figure>,
    pub reference: Option<Figure>,
}

impl OfKind {
    fn words(&self) -> String {
        let name = match self.kind {
            Kind::Latency => "latency",
            Kind::Stream => "rate",
            Kind::Duplex => "rate with one in the other direction",
        };
        let of = |figure: &Figure| figure.words(self.kind);
        let stages = self.stages.iter().map(|(stage, figure)| {
            let when = match stage {
                Stage::Together => "together",
                Stage::Again => "again",
                Stage::Alone | Stage::Reference => "alone",
            };
            format!("{when} {}", of(figure))
        });
        let others = self.others.as_ref();
        let reference = self.reference.as_ref();
        format!(
            "{name}: {}{}{}",
            stages.collect::<Vec<_>>().join(", "),
            others.map_or_else(String::new, |figure| format!("; others {}", of(figure))),
            reference.map_or_else(String::new, |figure| format!(", alone {}", of(figure)))
        )
    }
}

/// The rows that figures are of, by the knob that names them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Rows {
    Host(String),
    Ways(Vec<(String, String)>),
    Fabric,
}

impl Rows {
    fn words(&self) -> String {
        match self {
            Self::Host(host) => format!("rows: flow={host}>* and flow=*>{host}"),
            Self::Ways(ways) => {
                let ways = ways.iter().map(|(src, dst)| format!("flow={src}>{dst}"));
                format!("rows: {}", ways.collect::<Vec<_>>().join(" and "))
            }
            Self::Fabric => "rows: stage=again beside stage=alone".into(),
        }
    }
}

/// The figures behind a verdict.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Figures {
    pub kinds: Vec<OfKind>,
    /// The part of the time in which the receiver's window held the senders, where it is worth a word.
    pub held: Option<f64>,
    /// How many pairs there are, and the spread of their rates.
    pub spread: Option<(usize, f64)>,
    pub rows: Rows,
}

impl Figures {
    pub(crate) fn words(&self) -> String {
        let mut parts: Vec<String> = self.kinds.iter().map(OfKind::words).collect();
        parts.extend(self.held.map(|held| {
            format!(
                "the receiver's window held the senders {} of the time",
                share(held)
            )
        }));
        parts.extend(
            self.spread.map(|(pairs, spread)| {
                format!("of {pairs} pairs, spread of rates {}", share(spread))
            }),
        );
        parts.push(self.rows.words());
        parts.join("; ")
    }
}

/// What a verdict follows from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Behind {
    Figures(Figures),
    /// Why a pair gave nothing, in the words of its launch.
    Failure(String),
}

/// A verdict.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Verdict {
    pub bad: Bad,
    pub behind: Behind,
}

impl Words for Verdict {
    fn sentence(&self) -> String {
        self.bad.sentence()
    }

    fn arithmetic(&self) -> Option<String> {
        Some(match &self.behind {
            Behind::Figures(figures) => figures.words(),
            Behind::Failure(why) => why.clone(),
        })
    }

    fn remedy(&self) -> Option<String> {
        Some(self.bad.remedy())
    }
}
