//! The files that a lab writes: the ledger and the capture. One that cannot be written is given up, and the lab goes on.
//!
//! Model:   the first failure of a file is kept for the end of the lab and nothing more is written to it. What was written until then can
//!          be read: a capture is cut at its last whole frame, and a ledger is read up to its last whole record.
//! Checked: `a_full_disk_ends_no_lab` of the end-to-end tests.

use super::{SwitchError, file};
use crate::config::{Config, WrittenFile};
use crate::pcap::Pcap;
use sonde_link::Port;
use sonde_link::ledger::{self, Entry};
use sonde_units::Instant;
use std::fs::File;
use std::io::{self, BufWriter};
use std::os::fd::OwnedFd;

/// The files, as far as they were asked for and can be written.
#[derive(Default)]
pub(super) struct Files {
    ledger: Option<(WrittenFile, ledger::Writer<BufWriter<File>>)>,
    pcap: Option<Capture>,
    broken: Vec<String>,
}

struct Capture {
    about: WrittenFile,
    port: Port,
    pcap: Pcap<File>,
}

impl Files {
    /// Takes over what the command opened.
    pub fn open(
        config: &Config,
        fds: Vec<OwnedFd>,
        frame_bytes: usize,
    ) -> Result<Self, SwitchError> {
        let mut fds = fds.into_iter().map(File::from);
        let missing = || file("take over an output file")(io::ErrorKind::NotFound.into());
        // What a file held before is kept until the lab is up.
        let mut next = || -> Result<File, SwitchError> {
            let output = fds.next().ok_or_else(missing)?;
            if output.metadata().is_ok_and(|about| about.is_file()) {
                output.set_len(0).map_err(file("empty an output file"))?;
            }
            Ok(output)
        };
        let mut files = Self::default();
        if let Some(about) = &config.ledger {
            let header = ledger::Header {
                site: config.site.clone(),
                seed: config.seed,
            };
            let out = BufWriter::with_capacity(1 << 20, next()?);
            match ledger::Writer::new(out, &header) {
                Ok(ledger) => files.ledger = Some((about.clone(), ledger)),
                Err(error) => files.broken.push(about.told("ledger", &error)),
            }
        }
        if let Some((port, about)) = &config.pcap {
            files.pcap = Some(Capture {
                about: about.clone(),
                port: Port(*port),
                pcap: Pcap::new(next()?, frame_bytes as u32),
            });
        }
        Ok(files)
    }

    /// Whether a ledger is written.
    pub fn has_ledger(&self) -> bool {
        self.ledger.is_some()
    }

    /// Adds an entry to the ledger, if there is one.
    pub fn append(&mut self, entry: &Entry) {
        let Some((about, ledger)) = &mut self.ledger else {
            return;
        };
        if let Err(error) = ledger.append(entry) {
            self.broken.push(about.told("ledger", &error));
            self.ledger = None;
        }
    }

    /// Whether frames at this port are captured.
    pub fn captures(&self, port: Port) -> bool {
        self.pcap.as_ref().is_some_and(|one| one.port == port)
    }

    /// Adds a frame to the capture, if there is one.
    pub fn capture(&mut self, realtime_ns: u64, frame: &[u8]) {
        self.with_capture(|pcap| pcap.write(realtime_ns, frame));
    }

    /// Ends the files; why each that broke did, once.
    pub fn end(&mut self, at: Instant) -> Vec<String> {
        if let Some((about, ledger)) = self.ledger.take()
            && let Err(error) = ledger.end(at)
        {
            self.broken.push(about.told("ledger", &error));
        }
        self.with_capture(Pcap::flush);
        std::mem::take(&mut self.broken)
    }

    fn with_capture(&mut self, write: impl FnOnce(&mut Pcap<File>) -> io::Result<()>) {
        let Some(capture) = &mut self.pcap else {
            return;
        };
        if let Err(error) = write(&mut capture.pcap) {
            self.broken.push(capture.about.told("capture", &error));
            let (file, whole_bytes) = capture.pcap.whole();
            // A pipe cannot be cut; its reader has what there is.
            drop(file.set_len(whole_bytes));
            self.pcap = None;
        }
    }
}
