//! Many clients and one server: requests that wait for answers are flow control, as much as the server's port has room for; a peak rate is another.
//!
//! Model:   a request is a write of 8 KiB by NFS over UDP, which the server answers as it has come. A client has so many on the way and sends the next for
//!          each answer; who sends without an answer goes on as soon as its station can. One that is lost is not sent again.
//! Source:  RFC 2684 §5.2 and ITU-T I.363.5: 8 bytes of LLC/SNAP and 8 of AAL5's trailer beside a request, in cells of 48 bytes.

use sonde_link::{
    Admission, Class, Event, Frame, FrameId, NetworkSpec, Port, build, resolve, udp_max,
};
use sonde_units::{Bytes, Instant, Span};
use sonde_virtual::{Clock, Happening};

/// A request and its answer, as layer-3 bytes.
const REQUEST: Bytes = Bytes(8_360);
const ANSWER: Bytes = Bytes(124);
const CELLS: u64 = (8_360u64 + 16).div_ceil(48);
const SERVER: Port = Port(0);

/// Requests of three quarters of a second.
#[derive(Default)]
struct Seen {
    lost: u64,
    /// Those of the last half of a second, as a rate.
    per_s: u64,
}

fn spec(selector: &str) -> NetworkSpec {
    resolve(selector, &|_| unreachable!()).unwrap()
}

/// So many clients and a server; `window` is how many requests of each are on the way at most, without it none waits.
fn serve(spec: &NetworkSpec, clients: u16, window: Option<usize>) -> Seen {
    let mut clock: Clock<_> = Clock::new(build(spec, clients + 1, 1).unwrap());
    while clock.step(Instant::START + Span::secs(1)).is_some() {}
    let begin = clock.now();
    let (warm, end) = (begin + Span::millis(250), begin + Span::millis(750));
    // By port: to whom it has to send. A frame's name ends with its client's number.
    let mut due: Vec<Vec<Port>> = vec![vec![SERVER; window.unwrap_or(1)]; usize::from(clients) + 1];
    due[0].clear();
    let (mut count, mut seen) = (0, Seen::default());
    let mut send = |clock: &mut Clock<_>, due: &mut Vec<Vec<Port>>, from: Port| {
        while let Some(to) = due[usize::from(from.0)].last().copied() {
            let (client, len) = match from {
                SERVER => (to, ANSWER),
                client => (client, REQUEST),
            };
            let id = FrameId(count << 16 | u64::from(client.0));
            let is_taken = clock.ready(from, Class::default())
                && clock.offer(Frame::datagram(id, from, to, len)) == Admission::Taken;
            if !is_taken {
                return;
            }
            count += 1;
            if from == SERVER || window.is_some() {
                due[usize::from(from.0)].pop();
            }
        }
    };
    (1..=clients).for_each(|client| send(&mut clock, &mut due, Port(client)));
    while let Some(happening) = clock.step(end) {
        let Happening::Event(event) = happening else {
            continue;
        };
        match event {
            Event::Deliver { at, id, to, .. } if to == SERVER => {
                seen.per_s += 2 * u64::from(at >= warm);
                due[0].push(Port(id.0 as u16));
                send(&mut clock, &mut due, SERVER);
            }
            Event::Deliver { to, .. } if window.is_some() => {
                due[usize::from(to.0)].push(SERVER);
                send(&mut clock, &mut due, to);
            }
            Event::Lost { .. } => seen.lost += 1,
            Event::Ready { port, .. } => send(&mut clock, &mut due, port),
            _ => {}
        }
    }
    seen
}

#[test]
fn clients_that_wait_for_answers_lose_nothing_in_a_port_with_room_for_them() {
    let full = udp_max(&spec("atm-oc3c"), Bytes(REQUEST.0 - 28)).unwrap() / (8 * (REQUEST.0 - 28));
    println!(
        "clients window  room of all: lost, requests/s  room of a third: lost  (the line: {full} requests/s)"
    );
    for (clients, window) in [(4, 1), (4, 4), (8, 2), (32, 1)] {
        let all = u64::from(clients) * window as u64 * CELLS;
        let with = |cells: u64, window| {
            let spec = spec(&format!("atm-oc3c:buffer={cells}cells"));
            serve(&spec, clients, window)
        };
        let (room, third, open) = (
            with(all, Some(window)),
            with(all / 3, Some(window)),
            with(all, None),
        );
        println!(
            "{clients:>7} {window:>6} {:>18} {:>12} {:>22}",
            room.lost, room.per_s, third.lost
        );
        // No cell is lost, and the server's line is full.
        assert_eq!(room.lost, 0, "{clients} {window}");
        assert!(
            room.per_s * 100 >= full * 99 && room.per_s <= full + 2,
            "{} of {full}",
            room.per_s
        );
        // The room is needed, and so is the wait.
        assert!(
            third.lost > 0 && open.lost > 100,
            "{clients} {window}: {} {}",
            third.lost,
            open.lost
        );
        // The other control: a peak rate of each, which needs neither.
        let rate = 149_760 / u64::from(clients);
        let paced = spec(&format!(
            "atm-oc3c:buffer={}cells:pcr={rate}kbit",
            2 * u64::from(clients)
        ));
        let paced = serve(&paced, clients, None);
        assert_eq!(paced.lost, 0, "{clients}");
        assert!(
            paced.per_s * 100 >= full * 97,
            "{clients}: {} of {full}",
            paced.per_s
        );
    }
}
