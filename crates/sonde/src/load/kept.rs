//! A load as a run: a cell for each flow, and what came of it.
//!
//! Model:   the factors of a flow's cell are its two hosts, the load and the user bytes of a datagram; flows that have all of them in
//!          common are launches of one cell. The run begins with the load. A load that could not be ended leaves failed launches.
//! Units:   rates are of user bytes that came; lost are datagrams sent that did not.
//! Checked: `flows_become_cells`, `what_came_is_a_rate_and_a_share`; `tests/lab_nets.rs`, `tests/lab_emulation.rs`.

use crate::campaign::{seen, unix_ns};
use crate::failure::Failure;
use crate::layout::TestNetwork;
use crate::measure;
use sonde_fleet::{Load, Stream, StreamReport, TrafficReport};
use sonde_lab::Report;
use sonde_measure::{
    CellRecord, CellResult, EventRecord, Factors, HostRecord, LaunchRecord, Layer, Measurement,
    NetworkRecord, Phase, Quantity, Run, RunState,
};
use sonde_record::{Store, StoreError};
use std::time::Duration;

/// A run that is being made.
pub struct LoadRun {
    store: Store,
    run: Run,
    /// Of each flow.
    flows: Vec<Numbered>,
}

/// A flow's cell, and its number among those of the cell.
type Numbered = (String, u64);

/// The cells of a load's flows, and of each flow which it is and the how many-th of it.
fn cells(
    net: &TestNetwork,
    load: &Load,
    streams: &[Stream],
) -> Result<(Vec<CellRecord>, Vec<Numbered>), Failure> {
    let whole = Load {
        flows: Vec::new(),
        ..load.clone()
    };
    let (mut cells, mut flows) = (Vec::<CellRecord>::new(), Vec::new());
    for stream in streams {
        let pair = [stream.src, stream.dst].map(|host| net.hosts[host].clone());
        let profile = net.profile.map(|profile| profile.to_string());
        let factors = Factors {
            probe: "load".into(),
            mode: None,
            layer: Layer::Transport,
            path: "udp".into(),
            method: Some("plain".into()),
            knobs: [("flow".to_owned(), pair.join(">"))].into(),
            wait: Some("block".into()),
            network: net.name.clone(),
            testbed: net.testbed,
            hosts: pair.to_vec(),
            profile: profile.or_else(|| Some("asis".into())),
            attachment: net.attachment.clone(),
            load: Some(whole.to_string()),
            size_bytes: stream.size_bytes,
        };
        let id = factors.cell().map_err(Failure::cannot)?;
        let number = match cells.iter_mut().find(|cell| cell.id == id) {
            Some(cell) => {
                cell.launches += 1;
                cell.launches - 1
            }
            None => {
                cells.push(CellRecord {
                    id: id.clone(),
                    factors,
                    launches: 1,
                    skipped: None,
                });
                0
            }
        };
        flows.push((id, number));
    }
    Ok((cells, flows))
}

impl LoadRun {
    /// Begins the run of a load between hosts of a network.
    ///
    /// # Errors
    /// It cannot be kept.
    pub fn begin(
        store: Store,
        (seed, name): (u64, Option<&str>),
        (net, network): (&TestNetwork, NetworkRecord),
        hosts: &[HostRecord],
        load: &Load,
        streams: &[Stream],
    ) -> Result<Self, Failure> {
        let (cells, flows) = cells(net, load, streams)?;
        let run = Run {
            head: measure::begun(String::new(), seed)?,
            hosts: hosts.to_vec(),
            networks: vec![network],
            cells,
            launches: Vec::new(),
            events: measure::named(name),
            warnings: Vec::new(),
        };
        store.begin(&run).map_err(Failure::cannot)?;
        Ok(Self { store, run, flows })
    }

    /// The run.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// The run's name in the store.
    pub fn id(&self) -> &str {
        &self.run.head.id
    }

    /// Keeps what the flows came to, and what the emulated network did meanwhile.
    ///
    /// # Errors
    /// It cannot be kept.
    pub fn reached(
        &mut self,
        report: &TrafficReport,
        emulated: Option<&Report>,
    ) -> Result<(), StoreError> {
        let flows = report.streams.iter().zip(&self.flows);
        let launch = |(one, (cell, index)): (&StreamReport, &(String, u64))| {
            let mut launch = self.launch(cell, *index, one.span);
            launch.results[0].series = measurements(one);
            let evidence = &mut launch.evidence;
            let named = format!("{}>{}", launch.src, launch.dst);
            evidence
                .load_flows
                .insert(named.as_str().into(), one.evidence());
            evidence.datagrams.sent = Some(one.sent);
            evidence.datagrams.lost = Some(one.sent.saturating_sub(one.received));
            seen::emulation(emulated, evidence);
            launch.verdict = emulated.map(Report::verdict);
            launch.disturbances = emulated.map(Report::disturbances).unwrap_or_default();
            launch
        };
        let launches = flows.map(launch).collect();
        self.keep(launches)?;
        for remark in &report.remarks {
            self.store.warning(&self.run.head.id, remark)?;
        }
        self.end()
    }

    /// Keeps why the load failed.
    ///
    /// # Errors
    /// It cannot be kept.
    pub fn failed(&mut self, why: &str, lasted: Duration) -> Result<(), StoreError> {
        let launch = |(cell, index): &(String, u64)| {
            let mut launch = self.launch(cell, *index, lasted);
            launch.results[0].failure = Some(why.to_owned());
            launch
        };
        let launches = self.flows.iter().map(launch).collect();
        self.keep(launches)?;
        self.end()
    }

    /// A signal ended the load early.
    ///
    /// # Errors
    /// It cannot be kept.
    pub fn interrupted(&mut self) -> Result<(), StoreError> {
        let event = EventRecord {
            at_unix_ns: unix_ns(),
            kind: "interrupted".into(),
            text: "a signal came before the load's time was over".into(),
        };
        self.store.event(&self.run.head.id, &event)
    }

    fn launch(&self, cell: &str, index: u64, took: Duration) -> LaunchRecord {
        let hosts = self.run.cells.iter().find(|one| one.id == cell);
        let hosts = hosts.map_or(&[][..], |one| &one.factors.hosts);
        let host = |at: usize| hosts.get(at).cloned().unwrap_or_default();
        LaunchRecord {
            src: host(0),
            dst: host(1),
            began_unix_ns: self.run.head.began_unix_ns,
            took_ns: u64::try_from(took.as_nanos()).unwrap_or(u64::MAX),
            results: vec![CellResult {
                cell: cell.into(),
                index,
                ..CellResult::default()
            }],
            ..LaunchRecord::default()
        }
    }

    fn keep(&mut self, launches: Vec<LaunchRecord>) -> Result<(), StoreError> {
        self.store.launches(&self.run.head.id, &launches)?;
        self.run.launches.extend(launches);
        Ok(())
    }

    fn end(&mut self) -> Result<(), StoreError> {
        let state = match self.run.missing().is_empty() {
            true => RunState::Complete,
            false => RunState::Partial,
        };
        self.store.end_at(&self.run.head.id, state, Some(unix_ns()))
    }
}

/// What came, as a rate, and what was lost; without figures where nothing was sent.
fn measurements(one: &StreamReport) -> Vec<Measurement> {
    let warm = |quantity: Quantity, value: Option<u128>| Measurement {
        touched: None,
        quantity,
        phase: Phase::Warm,
        step: None,
        series: value
            .and_then(|value| u64::try_from(value).ok())
            .into_iter()
            .collect(),
        reason: value
            .is_none()
            .then(|| "no datagram was sent: let the load last longer".to_owned()),
    };
    let bits = u128::from(one.received) * u128::from(one.stream.size_bytes) * 8;
    let rate = (bits * 1_000_000_000)
        .checked_div(one.span.as_nanos())
        .filter(|_| one.sent > 0);
    let lost = u128::from(one.sent.saturating_sub(one.received));
    let share = lost * u128::from(Quantity::LostShare.per_unit());
    vec![
        warm(Quantity::ThroughputBps, rate),
        warm(Quantity::LostShare, share.checked_div(one.sent.into())),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use sonde_link::Law;
    use sonde_measure::Testbed;
    use sonde_units::Ratio;

    fn stream(src: usize, dst: usize) -> Stream {
        Stream {
            src,
            dst,
            rho: Ratio::new(3, 5),
            law: Law::OnOff(20),
            size_bytes: 1_472,
            of_bps: 1_000_000_000,
            mtu_bytes: 1_500,
        }
    }

    #[test]
    fn flows_become_cells() {
        let net = TestNetwork {
            testbed: Testbed::Hosts,
            name: "eth".into(),
            model: None,
            mtu: Some(1_500),
            hosts: ["a", "b", "c"].map(String::from).to_vec(),
            profile: None,
            attachment: None,
        };
        let load = Load {
            law: Law::OnOff(20),
            flows: vec![("a".into(), "b".into())],
            ..Load::poisson(Ratio::new(3, 5))
        };
        let streams = [stream(0, 1), stream(1, 2), stream(0, 1)];
        let (cells, flows) = cells(&net, &load, &streams).unwrap();
        let named = |cell: &CellRecord| (cell.factors.knobs["flow"].clone(), cell.launches);
        let named: Vec<_> = cells.iter().map(named).collect();
        assert_eq!(named, [("a>b".to_owned(), 2), ("b>c".to_owned(), 1)]);
        assert_eq!(
            cells[0].factors.load.as_deref(),
            Some("0.6:law=on-off:20"),
            "which flow it is stands elsewhere"
        );
        let numbers: Vec<u64> = flows.iter().map(|flow| flow.1).collect();
        assert_eq!((numbers, &flows[0].0), (vec![0, 0, 1], &flows[2].0));
    }

    #[test]
    fn what_came_is_a_rate_and_a_share() {
        let mut report = StreamReport {
            stream: stream(0, 1),
            span: Duration::from_secs(2),
            planned: 1_100,
            sent: 1_000,
            received: 900,
            planned_share: 0.6,
            sent_share: 0.6,
            received_share: 0.54,
            limit: None,
            cpu_share: 0.25,
        };
        let medians: Vec<Option<u64>> = measurements(&report)
            .iter()
            .map(|one| one.series.median())
            .collect();
        assert_eq!(medians, [Some(900 * 1_472 * 4), Some(100_000)]);
        (report.sent, report.received) = (0, 0);
        for one in measurements(&report) {
            assert!(one.series.is_empty() && one.reason.is_some(), "{one:?}");
        }
    }
}
