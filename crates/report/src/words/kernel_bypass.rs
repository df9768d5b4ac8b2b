//! What is said of bypassing TCP/IP.
//!
//! Units:   nanoseconds of a one-way time.
//! Checked: the tests of `finding::anatomy`.

use super::Words;
use crate::anatomy::AnatomyRow;
use crate::format::{bytes, completion, share, time};

/// What a part of the way takes less than over UDP; more where it is below zero.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    pub name: &'static str,
    pub gain_ns: f64,
}

impl Part {
    fn words(&self) -> String {
        let way = if self.gain_ns >= 0.0 { "less" } else { "more" };
        format!("{} {} {way}", self.name, time(self.gain_ns.abs()))
    }
}

/// Messages by packets beside those over UDP.
pub(crate) struct KernelBypass<'r> {
    pub packet: &'r AnatomyRow,
    pub udp: &'r AnatomyRow,
    pub gain_ns: f64,
    /// The longer of the two one-way times.
    pub longer_ns: f64,
    pub is_same: bool,
    /// The largest part of those that make the difference, and whether it is half of it.
    pub largest: Option<Part>,
    pub is_most: bool,
    /// What no part explains, where it is worth a word.
    pub rest_ns: Option<f64>,
    /// All parts, the largest first.
    pub parts: Vec<Part>,
}

impl KernelBypass<'_> {
    fn messages(&self) -> String {
        let wait = self.packet.wait.as_ref();
        let load = self.packet.load.as_ref();
        format!(
            "messages of {}{}{}",
            bytes(self.packet.size_bytes),
            wait.map_or(String::new(), |wait| format!(" ({})", completion(wait))),
            load.map_or(String::new(), |load| format!(" at a load of {load}")),
        )
    }

    fn why(&self) -> String {
        let largest = self.largest.map_or(String::new(), |part| {
            let what = match self.is_most {
                true => "most of it",
                false => "the largest part of it",
            };
            format!(", {what} in: {}", part.words())
        });
        let rest = self.rest_ns.map_or(String::new(), |ns| {
            format!(
                "; {} of it is not explained by any part",
                share((ns / self.gain_ns).abs())
            )
        });
        largest + &rest
    }
}

impl Words for KernelBypass<'_> {
    fn sentence(&self) -> String {
        let network = &self.packet.network;
        if self.is_same {
            return format!(
                "On {network} bypassing TCP/IP changes little for {}: {} over {}, {} over UDP.",
                self.messages(),
                time(self.packet.one_way_ns as f64),
                self.packet.by_method(),
                time(self.udp.one_way_ns as f64)
            );
        }
        let method = self.packet.method.as_deref();
        let method = method.filter(|method| *method != "plain");
        format!(
            "On {network} bypassing TCP/IP{} {} {} ({}) of the one-way time of {}{}.",
            method.map_or(String::new(), |method| format!(" ({method})")),
            if self.gain_ns > 0.0 { "saves" } else { "costs" },
            time(self.gain_ns.abs()),
            share(self.gain_ns.abs() / self.longer_ns),
            self.messages(),
            self.why()
        )
    }

    fn arithmetic(&self) -> Option<String> {
        let mut text = format!(
            "udp {} - {} {}",
            time(self.udp.one_way_ns as f64),
            self.packet.by_method(),
            time(self.packet.one_way_ns as f64)
        );
        for part in &self.parts {
            text += &format!("; {}", part.words());
        }
        Some(text)
    }

    fn remedy(&self) -> Option<String> {
        let text = match (self.is_same, self.gain_ns > 0.0) {
            (true, _) => "use udp: it needs no privilege",
            (false, true) => "a program that may open packet sockets can have this",
            (false, false) => "use udp",
        };
        Some(text.into())
    }
}
