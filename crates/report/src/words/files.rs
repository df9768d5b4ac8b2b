//! What is said of what holds a service of files.
//!
//! Units:   nanoseconds, bits a second, bytes.
//! Checked: `sentences_name_the_bound`; the tests of `finding::files`.

use sonde_measure::Line;
use sonde_measure::files::Stage;

use super::Words;
use crate::format::{bytes, count, counted, rate, share, time};

/// What holds it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Bound {
    ReceiveBuffer {
        lost: u64,
        again: u64,
        messages: u64,
        buffer_bytes: u64,
    },
    Disk {
        disk_bps: f64,
    },
    Daemons {
        daemons: u64,
        busy: f64,
    },
    Service {
        server_ns: f64,
        expected_ns: f64,
    },
    TransferSize {
        trip_ns: f64,
        expected_ns: f64,
    },
    Window {
        outstanding: u64,
        expected_ns: f64,
    },
    Stage {
        stage: Stage,
        stage_ns: f64,
        expected_ns: f64,
    },
}

impl Bound {
    /// The rule that finds it.
    pub(crate) const fn rule(&self) -> &'static str {
        match self {
            Self::ReceiveBuffer { .. } => "lost-at-receive-buffer",
            Self::Disk { .. } => "disk-bound",
            Self::Daemons { .. } => "daemons-short",
            Self::Service { .. } => "service-bound",
            Self::TransferSize { .. } => "transfer-size-bound",
            Self::Window { .. } => "window-bound",
            Self::Stage { .. } => "stage-bound",
        }
    }
}

/// Why the setting that a finding names cannot be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// The receive buffer.
    LargestBuffer,
    /// Calls outstanding.
    MostOutstanding,
    /// The transfer.
    LargestTransfer,
    /// A transfer is the whole file already.
    OneCall,
    /// A store in memory, without a modelled disk.
    Memory,
    /// The copy buffer of FTP.
    LargestCopy,
    /// The window of FTP.
    LargestWindow,
    /// No window was set.
    NoWindow,
}

impl Settled {
    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::LargestBuffer => "the receive buffer is the largest that can be asked for",
            Self::MostOutstanding => "so many calls are outstanding as a client can have",
            Self::LargestTransfer => "its transfers are the largest that the path has",
            Self::OneCall => "a file goes in one call, and larger transfers carry no more",
            Self::Memory => "it is the memory of the host, of which nothing can be set",
            Self::LargestCopy => "its copy buffer is the largest that there is",
            Self::LargestWindow => "its window is the largest that can be asked for",
            Self::NoWindow => {
                "no window is set: it is the network, or what the hosts have of buffers"
            }
        }
    }
}

/// A service that is held.
pub(crate) struct Held<'l> {
    pub line: &'l Line,
    /// `read`, `write`, or a call on names.
    pub operation: &'static str,
    /// Of files; none of calls on names.
    pub size_bytes: Option<u64>,
    pub rate_bps: Option<f64>,
    /// What a call takes.
    pub call_ns: f64,
    pub bound: Bound,
}

impl Held<'_> {
    fn what(&self) -> String {
        let mut line = self.line.clone();
        // The sentence says it.
        line.knobs.remove("op");
        let (by, network, operation) = (line.by(), &line.network, self.operation);
        match (self.size_bytes, self.rate_bps) {
            (Some(size), Some(bps)) => format!(
                "A {operation} of files of {} over {by} on {network} reaches {}",
                bytes(size),
                rate(bps)
            ),
            _ => format!(
                "A call {operation} over {by} on {network} takes {}",
                time(self.call_ns)
            ),
        }
    }
}

impl Words for Held<'_> {
    fn sentence(&self) -> String {
        let what = self.what();
        let why = match self.bound {
            Bound::ReceiveBuffer {
                lost,
                again,
                messages,
                ..
            } => format!(
                "{} lost at the server's UDP receive buffer, and {} of {} messages were retransmitted after a timeout",
                if lost == 1 {
                    "1 datagram was".to_owned()
                } else {
                    format!("{} datagrams were", count(lost))
                },
                count(again),
                count(messages)
            ),
            Bound::Disk { disk_bps } => {
                format!("the server's disk has {}", rate(disk_bps))
            }
            Bound::Daemons { daemons, busy } => format!(
                "the server's {} held in {} of the time",
                if daemons == 1 {
                    "one daemon was".to_owned()
                } else {
                    format!("{} were", counted(daemons, "daemon"))
                },
                share(busy)
            ),
            Bound::Service {
                server_ns,
                expected_ns,
            } => format!(
                "one call is outstanding, and the server takes {} of the {} that it should take",
                time(server_ns),
                time(expected_ns)
            ),
            Bound::TransferSize {
                trip_ns,
                expected_ns,
            } => format!(
                "one call is outstanding, and the round trip takes {} of the {} that it should take",
                time(trip_ns),
                time(expected_ns)
            ),
            Bound::Window {
                outstanding,
                expected_ns,
            } => format!(
                "{} outstanding, and each takes {} where its terms give {}: nothing waits",
                if outstanding == 1 {
                    "1 call is".to_owned()
                } else {
                    format!("{} calls are", count(outstanding))
                },
                time(self.call_ns),
                time(expected_ns)
            ),
            Bound::Stage {
                stage,
                stage_ns,
                expected_ns,
            } => format!(
                "of its stages the {} takes longest, {} of the {} that it should take",
                stage.name(),
                time(stage_ns),
                time(expected_ns)
            ),
        };
        format!("{what}: {why}.")
    }

    fn arithmetic(&self) -> Option<String> {
        let of = |expected_ns: f64| {
            format!(
                "{} expected of {} measured = {}",
                time(expected_ns),
                time(self.call_ns),
                share(expected_ns / self.call_ns.max(1.0))
            )
        };
        match self.bound {
            Bound::Service { expected_ns, .. }
            | Bound::TransferSize { expected_ns, .. }
            | Bound::Window { expected_ns, .. }
            | Bound::Stage { expected_ns, .. } => Some(of(expected_ns)),
            Bound::ReceiveBuffer { buffer_bytes, .. } => {
                Some(format!("the receive buffer has {}", bytes(buffer_bytes)))
            }
            Bound::Disk { .. } | Bound::Daemons { .. } => None,
        }
    }

    fn remedy(&self) -> Option<String> {
        let text = match self.bound {
            Bound::ReceiveBuffer { .. } => {
                "enlarge it (--with rcvbuf=1M; on a host net.core.rmem_max), or have fewer calls outstanding"
            }
            Bound::Disk { .. } => {
                "a faster network does not help; asynchronous writes (--with sync=no) do as long as the server's memory has room"
            }
            Bound::Daemons { .. } => "start more daemons (--with daemons=8,16)",
            Bound::Service { .. } => {
                "a faster network does not help; more calls outstanding do (--outstanding 1,4,8), and larger transfers where the service does not \
                 grow with them"
            }
            Bound::TransferSize { .. } => {
                "larger transfers carry more in each round trip (--transfer 8K,64K,1M), and more calls outstanding share it (--outstanding 1,4,8)"
            }
            Bound::Window { .. } => "more calls outstanding give more (--outstanding 8,16,32)",
            Bound::Stage { stage, .. } => match stage {
                Stage::SourceDisk => {
                    "a faster network does not help; read-ahead has the disk work while the socket sends (--with read-ahead=256K)"
                }
                Stage::SinkDisk => {
                    "a faster network does not help; writes behind (--with sync=no) do as long as the receiver's memory has room"
                }
                Stage::Translation => {
                    "transfer in binary, or translate by blocks (--with translate=block)"
                }
                Stage::Socket => "larger copy buffers take fewer calls (--with copy=64K,256K)",
                Stage::Network => {
                    "the network, or the window over it, is what holds: larger buffers (--with window=64K,256K) help where the window does"
                }
            },
        };
        Some(text.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::line;

    #[test]
    fn sentences_name_the_bound() {
        let line = line("ethernet-100", "nfs2:udp");
        let held = |bound| Held {
            line: &line,
            operation: "write",
            size_bytes: Some(1 << 20),
            rate_bps: Some(9.1e6),
            call_ns: 7_200_000.0,
            bound,
        };
        let service = held(Bound::Service {
            server_ns: 7_000_000.0,
            expected_ns: 7_150_000.0,
        });
        assert_eq!(
            service.sentence(),
            "A write of files of 1 MiB over nfs2:udp on ethernet-100 reaches 9.100 Mb/s: one call is outstanding, and the server takes \
             7.000 ms of the 7.150 ms that it should take."
        );
        assert!(service.arithmetic().unwrap().ends_with("= 99.3 %"));
        let lost = held(Bound::ReceiveBuffer {
            lost: 12,
            again: 13,
            messages: 1_013,
            buffer_bytes: 65_536,
        });
        assert!(
            lost.sentence().contains(
                "12 datagrams were lost at the server's UDP receive buffer, and 13 of 1013 messages"
            ),
            "{}",
            lost.sentence()
        );
    }
}
