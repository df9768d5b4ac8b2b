//! On which CPUs the switch runs: its own while programs stream, the programs' while they answer each other.
//!
//! Model:   in an exchange a host sends nothing before its last frame has left the network. Each frame of it then wakes the switch,
//!          and the switch the next program: across CPUs a wake-up costs 20 to 40 us and more, on one CPU 2 to 4. A frame that
//!          finds another of its sender's in the network is *crowded*. A window of 20 ms with at least 40 frames, of which at
//!          most a quarter is crowded, is of an exchange: the switch tries the programs' CPUs, and stays for as long as each
//!          window carries at least 5 % more frames a second than the one before the trial. Else it goes back, at once where
//!          frames crowd, and tries again after 0.1 s, then 0.2 s and so on up to 3.2 s. A stay is tried anew after 0.1 s, then
//!          0.2 s and so on up to 3.2 s, for what went before it may have been another exchange: how ranks of MPI meet, say,
//!          before they wait for messages by polling, which is slower with the switch on their CPU.
//! Units:   nanoseconds of CLOCK_MONOTONIC; rates in frames a second, rounded down.
//! Checked: the tests below; `a_round_trip_is_that_of_one_cpu` of the end-to-end tests.

use super::Switch;
use crate::config::CpuPlan;
use sonde_sys::cpu;

const WINDOW_NS: u64 = 20_000_000;
/// Frames of a window below which wake-ups are a small part of a round trip.
const FRAMES_MIN: u64 = 40;
/// Crowded frames that end a stay before its window does.
const CROWD: u64 = 64;
/// What a stay has to bring, in percent of the rate apart.
const GAIN_PERCENT: u64 = 105;
/// How long it stays where a trial put it before it tries the other place.
const PAUSE_NS: std::ops::RangeInclusive<u64> = 100_000_000..=3_200_000_000;
const SECOND_NS: u64 = 1_000_000_000;

/// The time until the trial after the next.
fn later(span_ns: u64) -> u64 {
    (span_ns * 2).min(*PAUSE_NS.end())
}

/// What was taken in since a time.
#[derive(Clone, Copy, Default)]
struct Window {
    from_ns: u64,
    frames: u64,
    crowded: u64,
}

/// Chooses between the switch's own CPUs and those of the programs.
pub(super) struct Seat {
    plan: CpuPlan,
    is_shared: bool,
    window: Window,
    /// Frames a second in the window before the trial.
    rate_apart: u64,
    /// No trial before, of either place.
    paused_until_ns: u64,
    pause_ns: u64,
    /// The stay after the next trial, where it gains.
    stay_ns: u64,
    moves: u64,
    /// How long it shared the programs' CPUs, until `moved_ns`.
    shared_ns: u64,
    moved_ns: u64,
}

impl Seat {
    /// That of a switch which begins on its own CPUs; none where the plan leaves nothing to choose.
    pub fn of(plan: &CpuPlan, now_ns: u64) -> Option<Self> {
        let is_choice = plan.name == CpuPlan::AUTO && plan.switch != plan.hosts;
        is_choice.then(|| Self {
            plan: plan.clone(),
            is_shared: false,
            window: Window {
                from_ns: now_ns,
                ..Window::default()
            },
            rate_apart: 0,
            paused_until_ns: now_ns,
            pause_ns: *PAUSE_NS.start(),
            stay_ns: *PAUSE_NS.start(),
            moves: 0,
            shared_ns: 0,
            moved_ns: now_ns,
        })
    }

    /// A frame was taken, while others of its sender were in the network or not.
    pub fn taken(&mut self, is_crowded: bool) {
        self.window.frames += 1;
        self.window.crowded += u64::from(is_crowded);
    }

    /// The CPUs to move to, if it is time to.
    pub fn poll(&mut self, now_ns: u64) -> Option<&[usize]> {
        let Window {
            from_ns,
            frames,
            crowded,
        } = self.window;
        let span_ns = now_ns.saturating_sub(from_ns);
        let is_crowd = self.is_shared && crowded >= CROWD && 2 * crowded > frames;
        if span_ns < WINDOW_NS && !is_crowd {
            return None;
        }
        self.window = Window {
            from_ns: now_ns,
            ..Window::default()
        };
        let rate = frames * SECOND_NS / span_ns.max(1);
        let is_busy = rate >= FRAMES_MIN * SECOND_NS / WINDOW_NS;
        let is_exchange = is_busy && !is_crowd && 4 * crowded <= frames;
        if !self.is_shared {
            if !is_exchange || now_ns < self.paused_until_ns {
                return None;
            }
            self.rate_apart = rate;
        } else if is_exchange && rate >= self.rate_apart * GAIN_PERCENT / 100 {
            self.pause_ns = *PAUSE_NS.start();
            if now_ns < self.moved_ns + self.stay_ns {
                return None;
            }
            // A window apart, and then the next trial.
            self.stay_ns = later(self.stay_ns);
        } else {
            self.stay_ns = *PAUSE_NS.start();
            if is_busy {
                self.paused_until_ns = now_ns + self.pause_ns;
                self.pause_ns = later(self.pause_ns);
            }
        }
        Some(self.go(now_ns))
    }

    fn go(&mut self, now_ns: u64) -> &[usize] {
        self.shared_ns = self.shared_ns_at(now_ns);
        self.moved_ns = now_ns;
        self.moves += 1;
        self.is_shared = !self.is_shared;
        if self.is_shared {
            &self.plan.hosts
        } else {
            &self.plan.switch
        }
    }

    /// How often it moved.
    pub fn moves(&self) -> u64 {
        self.moves
    }

    /// How long it shared the programs' CPUs until now.
    pub fn shared_ns_at(&self, now_ns: u64) -> u64 {
        let stay_ns = now_ns.saturating_sub(self.moved_ns);
        self.shared_ns + if self.is_shared { stay_ns } else { 0 }
    }
}

impl Switch {
    /// Moves this thread if it is time to. Where that is refused it stays where it is for good.
    pub(super) fn choose_seat(&mut self, now_ns: u64) {
        if let Some(cpus) = self.seat.as_mut().and_then(|seat| seat.poll(now_ns))
            && cpu::pin(cpus).is_err()
        {
            self.seat = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn seat() -> Seat {
        let plan = CpuPlan::named(CpuPlan::AUTO, &[0, 1]).unwrap();
        Seat::of(&plan, 0).unwrap()
    }

    /// A window of frames, every so many of them crowded, and where the switch is after it.
    fn window(seat: &mut Seat, now_ns: &mut u64, frames: u64, crowded_every: u64) -> bool {
        for number in 1..=frames {
            seat.taken(crowded_every > 0 && number % crowded_every == 0);
            seat.poll(*now_ns + number * WINDOW_NS / (frames + 1));
        }
        *now_ns += WINDOW_NS;
        seat.poll(*now_ns);
        seat.is_shared
    }

    #[test]
    fn an_exchange_that_gains_is_shared_and_a_stream_is_not() {
        let (mut seat, mut now) = (seat(), 0);
        assert!(!window(&mut seat, &mut now, 10, 0), "too few to matter");
        assert!(!window(&mut seat, &mut now, 1_000, 2), "a stream");
        assert!(window(&mut seat, &mut now, 200, 10));
        for _ in 0..4 {
            assert!(window(&mut seat, &mut now, 900, 10));
        }
        assert_eq!((seat.moves(), seat.shared_ns_at(now)), (1, 80 * MS));
        // It leaves within the first frames of a stream, and does not come back for a while.
        for _ in 0..CROWD {
            seat.taken(true);
        }
        assert_eq!(seat.poll(now + MS), Some(&[1][..]));
        assert!(!window(&mut seat, &mut now, 200, 0));
        now += 100 * MS;
        window(&mut seat, &mut now, 0, 0);
        assert!(window(&mut seat, &mut now, 200, 0));
        assert_eq!(seat.moves(), 3);
    }

    #[test]
    fn a_trial_without_gain_is_ended_and_repeated_ever_less_often() {
        let (mut seat, mut now) = (seat(), 0);
        for _ in 0..1_000 {
            window(&mut seat, &mut now, 200, 0);
        }
        // 0.1, 0.2, 0.4 ... 3.2 s apart in 20 s, each there and back.
        assert!((16..=26).contains(&seat.moves()), "{}", seat.moves());
        assert!(seat.shared_ns_at(now) < 300 * MS);
    }

    #[test]
    fn a_stay_is_tried_anew_ever_less_often() {
        let (mut seat, mut now) = (seat(), 0);
        while now < 20_000 * MS {
            let frames = if seat.is_shared { 900 } else { 200 };
            window(&mut seat, &mut now, frames, 0);
        }
        // 0.1, 0.2, 0.4 ... 3.2 s apart, a window each.
        assert!((17..=27).contains(&seat.moves()), "{}", seat.moves());
        assert!(seat.shared_ns_at(now) > 19_500 * MS);
    }

    #[test]
    fn a_stay_ends_where_what_follows_is_faster_apart() {
        let (mut seat, mut now) = (seat(), 0);
        assert!(window(&mut seat, &mut now, 100, 0));
        for _ in 0..1_000 {
            let frames = if seat.is_shared { 400 } else { 450 };
            window(&mut seat, &mut now, frames, 0);
        }
        assert!(!seat.is_shared);
        assert!(seat.shared_ns_at(now) < 600 * MS);
    }

    #[test]
    fn quiet_programs_have_it_apart_and_try_again_at_once() {
        let (mut seat, mut now) = (seat(), 0);
        assert!(window(&mut seat, &mut now, 200, 0));
        assert!(window(&mut seat, &mut now, 400, 0));
        assert!(!window(&mut seat, &mut now, 3, 0));
        assert!(window(&mut seat, &mut now, 200, 0));
    }

    #[test]
    fn other_plans_and_one_cpu_leave_no_choice() {
        for (name, online) in [("split", &[0, 1][..]), ("one", &[0, 1]), ("auto", &[3])] {
            let plan = CpuPlan::named(name, online).unwrap();
            assert!(Seat::of(&plan, 0).is_none(), "{name} on {online:?}");
        }
    }
}
