//! What is said of background load and of what it adds.
//!
//! Units:   nanoseconds of half a round trip; loads are parts of a link.
//! Checked: the tests of `finding::load`.

use super::Words;
use crate::format::{bytes, counted, share, significant, time};
use crate::queueing::QueueingRow;

/// What to do where hosts made too little of it themselves.
const BY_HOSTS: &str = "`limit` of `load_flows` in the evidence (`sonde report export --json`) names the limit of the senders: for want \
    of CPU take larger frames (`:size=BYTES`), or other hosts (`--load-flow`); where less arrived than was sent the path was full, and \
    the load was its capacity; in a short repetition a random law deviates by chance";
/// The same where the switch makes it.
const BY_SWITCH: &str = "where load and stream together exceed the link its port overflows, and the next repetition finds the queue \
    full: measure the probe of interest alone (`sonde probe`), or at a lower load; else the switch lacks CPU: fewer hosts, a \
    slower network, larger frames of the load (`:size=BYTES`), or a machine with more CPUs";

/// What a load adds to a message.
pub(crate) struct Wait<'r> {
    pub row: &'r QueueingRow,
}

fn ns(ns: i64) -> String {
    time(ns as f64)
}

impl Wait<'_> {
    fn interval(&self) -> Option<(i64, i64)> {
        Some((self.row.ci95_low_ns?, self.row.ci95_high_ns?))
    }

    /// Whether the wait may be none.
    fn may_be_none(&self) -> bool {
        self.interval()
            .is_some_and(|(low, high)| low <= 0 && high >= 0)
    }
}

impl Words for Wait<'_> {
    fn sentence(&self) -> String {
        let row = self.row;
        let model = row.model_waits_ns().map_or(String::new(), |model| {
            let verdict = match row.agrees() {
                Some(true) => ": within the interval",
                Some(false) => ": outside the interval",
                None => "",
            };
            format!("; the virtual clock has {}{verdict}", ns(model))
        });
        let of = format!(
            "a message of {} over {}",
            bytes(row.size_bytes),
            row.line().by()
        );
        if self.may_be_none() {
            return format!(
                "At load {} on {} the queueing delay of {of} is not distinguishable from zero{model}.",
                row.load, row.network
            );
        }
        let (sign, than) = if row.waits_ns < 0 {
            (-1, "less than")
        } else {
            (1, "longer than")
        };
        let interval = self.interval().map_or(String::new(), |(low, high)| {
            let ends = [sign * low, sign * high];
            format!(
                " ({} to {})",
                ns(ends[0].min(ends[1])),
                ns(ends[0].max(ends[1]))
            )
        });
        format!(
            "At load {} on {} {of} waits {}{interval} {than} idle{model}.",
            row.load,
            row.network,
            ns(sign * row.waits_ns)
        )
    }

    fn arithmetic(&self) -> Option<String> {
        let row = self.row;
        let mut text = format!(
            "{} loaded - {} idle",
            time(row.loaded_ns as f64),
            time(row.idle_ns as f64)
        );
        if let Some((low, high)) = self.interval().filter(|_| self.may_be_none()) {
            text += &format!(" = {} ({} to {})", ns(row.waits_ns), ns(low), ns(high));
        }
        if let (Some(loaded), Some(idle)) = (row.model_loaded_ns, row.model_idle_ns) {
            let [loaded, idle] = [loaded, idle].map(|ns| time(ns as f64));
            text += &format!("; model {loaded} - {idle}");
        }
        Some(text)
    }
}

/// Waits that are not those of the virtual clock.
pub(crate) struct Apart<'r> {
    pub worst: &'r QueueingRow,
    pub outside: usize,
    pub judged: usize,
}

impl Words for Apart<'_> {
    fn sentence(&self) -> String {
        let worst = self.worst;
        format!(
            "At load {} on {} the waits of {} of {} messages differ from the virtual clock's; the farthest, of {} over {}, waits {}, \
             there {}.",
            worst.load,
            worst.network,
            self.outside,
            self.judged,
            bytes(worst.size_bytes),
            worst.line().by(),
            ns(worst.waits_ns),
            ns(worst.model_waits_ns().unwrap_or_default())
        )
    }

    fn remedy(&self) -> Option<String> {
        Some(
            "check that the load was delivered (`load-reached`), the emulation on schedule (`disturbed`) and the hosts' CPU sufficient; \
             more repetitions (`--launches N`) narrow the intervals"
                .into(),
        )
    }
}

/// What came of a load.
pub(crate) struct Brought<'r> {
    pub network: &'r str,
    pub load: &'r str,
    pub wanted: f64,
    pub least: f64,
    pub most: f64,
    /// Of the farthest port in the median launch where it was missed, else of all.
    pub usual: f64,
    /// Of one CPU.
    pub switch: Option<f64>,
    pub launches: usize,
    /// Launches in which some port was far off.
    pub far_off: usize,
    pub missed: bool,
    /// Whether hosts made it, or the switch.
    pub by_hosts: bool,
}

impl Words for Brought<'_> {
    fn sentence(&self) -> String {
        let switch = self.switch.map_or(String::new(), |part| {
            format!("; the switch took {} of a CPU", share(part))
        });
        let usual = significant(self.usual, 4);
        if !self.missed {
            let whose = match self.by_hosts {
                true => "each flow's link",
                false => "the link to each measured host",
            };
            return format!(
                "The load {} on {} was delivered: {usual} of {whose} in the median repetition{switch}.",
                self.load, self.network
            );
        }
        let launches = match self.far_off {
            0 => String::new(),
            far => format!(
                ", and 10 % off or more in {far} of {} repetitions",
                self.launches
            ),
        };
        let whose = match self.by_hosts {
            true => "a flow's link",
            false => "the link to a measured host",
        };
        format!(
            "The load {} on {} was not delivered as requested: {usual} of {whose} in the median repetition{launches}{switch}.",
            self.load, self.network
        )
    }

    fn arithmetic(&self) -> Option<String> {
        Some(format!(
            "{} to {} over {}, {} requested",
            significant(self.least, 4),
            significant(self.most, 4),
            counted(self.launches as u64, "repetition"),
            significant(self.wanted, 4)
        ))
    }

    fn remedy(&self) -> Option<String> {
        let text = match self.by_hosts {
            true => BY_HOSTS,
            false => BY_SWITCH,
        };
        self.missed.then(|| text.into())
    }
}
