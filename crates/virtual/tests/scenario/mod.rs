//! Cross traffic between four stations, drawn from a seed, under the virtual clock; its ledger and all its events.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use sonde_link::ledger::{Entry, Header, Writer};
use sonde_link::{
    Class, Command, Ecn, Fabric, Frame, FrameId, Kind, NetworkSpec, Port, SiteSpec, To, VcCommand,
};
use sonde_units::{Bytes, Instant, Ratio, Span};
use sonde_virtual::{Clock, Happening};

/// Stations.
pub const PORTS: u16 = 4;
/// Frames that are offered at first; blocked ones are offered again.
pub const FRAMES: u64 = 2_000;

/// A network with a loss of 1 % and a reordering of 5 %.
pub fn with_knobs(mut spec: NetworkSpec) -> NetworkSpec {
    (spec.path.loss, spec.path.reorder) = (Ratio::new(1, 100), Ratio::new(1, 20));
    spec.path.reorder_by = Span::micros(300);
    spec
}

/// What a station plans: to offer a frame, or a command.
enum Plan {
    Offer(Frame),
    Command(Command),
}

/// Runs the scenario: its ledger and the text of everything that happened.
pub fn run(spec: &NetworkSpec, seed: u64) -> (Vec<u8>, String) {
    run_with(spec, seed, &[])
}

/// The same with commands in it; those that the network refuses are left out of the ledger.
pub fn run_with(
    spec: &NetworkSpec,
    seed: u64,
    commands: &[(Instant, Command)],
) -> (Vec<u8>, String) {
    run_on(
        Fabric::new(spec, PORTS, seed).unwrap(),
        spec,
        seed,
        commands,
    )
}

/// The same on a network of `spec` that was built already.
pub fn run_on(
    network: Fabric,
    spec: &NetworkSpec,
    seed: u64,
    commands: &[(Instant, Command)],
) -> (Vec<u8>, String) {
    let header = Header {
        site: SiteSpec::single(spec.clone(), PORTS),
        seed,
    };
    let mut ledger = Writer::new(Vec::new(), &header).unwrap();
    let mut clock = Clock::new(network);
    plan_traffic(&mut clock, spec, seed);
    for (at, command) in commands {
        clock.plan(*at, Plan::Command(*command));
    }
    let mut text = String::new();
    let end = Instant::START + Span::secs(10);
    let mut entries = Vec::new();
    clock.run_until(end, |clock, happening| {
        let at = clock.now();
        match happening {
            Happening::Action(Plan::Offer(frame)) => {
                let admission = clock.offer(frame);
                text += &format!("{at:?} {:?} {admission:?}\n", frame.id);
                entries.push(Entry::Offer {
                    at,
                    frame,
                    admission,
                });
                if admission == sonde_link::Admission::Blocked {
                    clock.plan(at + Span::millis(5), Plan::Offer(frame));
                }
            }
            Happening::Action(Plan::Command(command)) => {
                if clock.command(command).is_ok() {
                    entries.push(Entry::Command {
                        at,
                        number: 0,
                        command,
                    });
                }
            }
            Happening::Event(event) => {
                text += &format!("{event:?}\n");
                // Written a little late, as under a real clock.
                let actual = at + Span::nanos(at.as_picos() % 997);
                entries.extend(Entry::of_event(&event, Some(actual)));
            }
        }
    });
    for entry in &entries {
        ledger.append(entry).unwrap();
    }
    text += &format!("{:?}\n", sonde_link::Network::counters(clock.network()));
    (ledger.end(end).unwrap(), text)
}

fn plan_traffic(clock: &mut Clock<Fabric, Plan>, spec: &NetworkSpec, seed: u64) {
    let mut random = Pcg64Mcg::seed_from_u64(seed ^ 0x5eed);
    let mut below = |n: u64| random.next_u64() % n;
    // Too fast for the stations at first, then about what one line carries.
    let step = spec.line.time(Bytes(spec.mtu)).as_picos().max(1_000_000);
    let mut at = 0;
    for id in 0..FRAMES {
        at += below(if id < FRAMES / 2 { step / 16 } else { step });
        let from = Port(below(u64::from(PORTS)) as u16);
        let (to, kind) = match below(40) {
            0 => (To::All, Kind::Resolve(Port(below(4) as u16))),
            1 => (To::Unknown, Kind::Other),
            2 => (To::One(from), Kind::Ip),
            3..=25 => (To::One(Port((from.0 == 0).into())), Kind::Ip),
            _ => (To::One(Port(below(4) as u16)), Kind::Arp),
        };
        let frame = Frame {
            id: FrameId(id),
            from,
            to,
            len: Bytes(1 + below(spec.mtu + 5)),
            kind,
            class: Class(0),
            ecn: Ecn::NotCapable,
            flow: below(7),
        };
        clock.plan(Instant::from_picos(at), Plan::Offer(frame));
        if id % 100 == 50 {
            let (a, b) = (Port(0), Port(1 + (id / 100 % 3) as u16));
            let vc = if id % 200 == 50 {
                VcCommand::Release(a, b)
            } else {
                VcCommand::Establish(a, b)
            };
            clock.plan(Instant::from_picos(at), Plan::Command(Command::Vc(vc)));
        }
    }
}

/// Every network of the catalogue, plain and with knobs, and ATM with switched circuits and a small buffer.
pub fn networks() -> Vec<NetworkSpec> {
    let mut all = sonde_link::catalogue();
    for selector in [
        "atm-oc3c:vc=svc:table=2",
        "atm-oc3c:buffer=300cells",
        "ethernet-100:buffer=4frames:forwarding=cut-through",
        "wire:delay=10ms",
    ] {
        all.push(sonde_link::resolve(selector, &|_| unreachable!()).unwrap());
    }
    let knobs: Vec<_> = all.iter().cloned().map(with_knobs).collect();
    all.extend(knobs);
    all
}
