//! A stream one way, the sending side.
//!
//! Model:   messages of the agreed size, back to back, for the first second, the budget, and a little longer so that the
//!          receiver's window ends within the stream. TCP_INFO is read at the two ends of the timed part and reported as
//!          differences. A message beyond 1 MiB is written in pieces, so that the clock is looked at.
//! Checked: `tests/conversation.rs`, `throughput_*`.

use sonde_channel::{Channel, Path, Tcp, Udp, payload};
use sonde_sys::clock::monotonic_ns;
use sonde_sys::cpu::thread_cpu_ns;
use sonde_sys::socket::TcpInfo;

use crate::meter::LEAD_IN_NS;
use crate::{Error, Figures, Measure, Measured, Result, SenderWindow, Sent, Terms, admission};

const PIECE_BYTES_MAX: usize = 1 << 20;
/// How much longer than the receiver's window the stream lasts, beside a tenth of the budget.
const MARGIN_NS: u64 = 200_000_000;

/// One end of the timed part.
#[derive(Clone, Copy)]
struct Mark {
    at_ns: u64,
    bytes: u64,
    cpu_ns: u64,
    info: Option<TcpInfo>,
}

/// The schedule of a stream: where its timed part begins and ends.
struct Schedule {
    begin_ns: u64,
    end_ns: u64,
    stop_ns: u64,
    begin: Option<Mark>,
    end: Option<Mark>,
}

impl Schedule {
    fn new(now_ns: u64, terms: &Terms) -> Self {
        let begin_ns = now_ns + LEAD_IN_NS;
        let end_ns = begin_ns + terms.budget_ns;
        let stop_ns = end_ns + terms.budget_ns / 10 + MARGIN_NS;
        Self {
            begin_ns,
            end_ns,
            stop_ns,
            begin: None,
            end: None,
        }
    }

    /// After a send: whether to go on.
    #[inline]
    fn on_sent(
        &mut self,
        bytes: u64,
        info: impl FnOnce() -> Result<Option<TcpInfo>>,
    ) -> Result<bool> {
        let now_ns = monotonic_ns();
        let due = match (self.begin, self.end) {
            (None, _) => now_ns >= self.begin_ns,
            (Some(_), None) => now_ns >= self.end_ns,
            _ => false,
        };
        if due {
            let mark = Some(Mark {
                at_ns: now_ns,
                bytes,
                cpu_ns: thread_cpu_ns(),
                info: info()?,
            });
            if self.begin.is_none() {
                self.begin = mark
            } else {
                self.end = mark
            }
        }
        Ok(now_ns < self.stop_ns)
    }

    fn window(&self) -> Result<SenderWindow> {
        let (Some(begin), Some(end)) = (self.begin, self.end) else {
            return Err(Error::TooShort {
                window_ns: 0,
                needed_ns: self.end_ns - self.begin_ns,
            });
        };
        let between = |field: fn(&TcpInfo) -> Option<u64>| {
            Some(field(&end.info?)?.saturating_sub(field(&begin.info?)?))
        };
        Ok(SenderWindow {
            window_ns: end.at_ns - begin.at_ns,
            bytes: end.bytes - begin.bytes,
            cpu_ns: end.cpu_ns - begin.cpu_ns,
            busy_us: between(|info| info.busy_time_us),
            rwnd_limited_us: between(|info| info.rwnd_limited_us),
            sndbuf_limited_us: between(|info| info.sndbuf_limited_us),
            retransmits: between(|info| Some(info.total_retrans.into())),
            retransmitted_bytes: between(|info| info.bytes_retrans),
        })
    }
}

pub(crate) fn measure(measure: &Measure) -> Result<Measured> {
    let terms = &measure.terms;
    match terms.path {
        Path::Tcp => {
            let mut channel = Tcp::connect(measure.peer, terms.options())?;
            admission::hello_tcp(&mut channel, &measure.token, terms, true)?;
            let sent = stream(&mut channel, terms)?;
            Ok(Measured {
                settings: channel.settings()?,
                figures: Figures::Throughput(sent),
            })
        }
        Path::Udp => {
            let mut channel = Udp::connect(measure.peer, terms.options())?;
            admission::hello_udp(&mut channel, &measure.token, terms, false)?;
            let sent = blast(&mut channel, terms)?;
            let settings = channel.settings()?;
            admission::end_udp(&mut channel, sent.messages, terms)?;
            Ok(Measured {
                settings,
                figures: Figures::Throughput(sent),
            })
        }
    }
}

fn stream(channel: &mut Tcp, terms: &Terms) -> Result<Sent> {
    let mut message = payload::message(terms.size());
    let mut schedule = Schedule::new(monotonic_ns(), terms);
    let (mut bytes, mut messages) = (0u64, 0u64);
    'stream: loop {
        payload::stamp(&mut message, messages as u32);
        let mut at = 0;
        while at < message.len() {
            let end = message.len().min(at + PIECE_BYTES_MAX);
            let sent = channel.send_some(&message[at..end])?;
            at += sent;
            bytes += sent as u64;
            messages += u64::from(at == message.len());
            if !schedule.on_sent(bytes, || Ok(Some(channel.info()?)))? {
                break 'stream;
            }
        }
    }
    channel.end()?;
    drained(channel)?;
    Ok(Sent {
        bytes,
        messages,
        window: schedule.window()?,
    })
}

/// Waits until the receiver has taken everything and closed; as long as acknowledgements come, it does.
fn drained(channel: &mut Tcp) -> Result<()> {
    loop {
        let acked = channel.info()?.bytes_acked;
        match channel.recv_some(&mut [0; 64]) {
            Ok(0) => return Ok(()),
            Ok(_) => {
                return Err(Error::Integrity(
                    "the receiver of a stream sent something back".into(),
                ));
            }
            Err(sonde_channel::Error::Timeout { .. }) if channel.info()?.bytes_acked > acked => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn blast(channel: &mut Udp, terms: &Terms) -> Result<Sent> {
    let mut message = payload::message(terms.size());
    let mut schedule = Schedule::new(monotonic_ns(), terms);
    let (mut bytes, mut messages) = (0u64, 0u64);
    loop {
        payload::stamp(&mut message, messages as u32);
        channel.send(&message)?;
        messages += 1;
        bytes += message.len() as u64;
        if !schedule.on_sent(bytes, || Ok(None))? {
            return Ok(Sent {
                bytes,
                messages,
                window: schedule.window()?,
            });
        }
    }
}
