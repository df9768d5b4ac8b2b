//! The output against queueing theory: M/D/1, N·D/D/1 and M/M/1/K.
//!
//! Model:   arrivals are drawn here; one cell time is a second of the theory. Intervals come from batches, or from the binomial
//!          distribution where samples are independent.
//! Source:  Roberts and Virtamo 1991 (N·D/D/1); Erlang (M/D/1); the truncated geometric distribution (M/M/1/K).

use super::super::*;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

const CELL: u64 = 1_000_000;

/// An output that cells come to one by one.
struct Line {
    output: Output,
    rules: Rules,
    pool: Pool,
    arrived: VecDeque<u64>,
    /// How long each cell waited, in the order of service.
    waits: Vec<u64>,
    lost: u64,
    /// The next time of service.
    service: Box<dyn FnMut() -> u64>,
}

impl Line {
    fn new(limit: u64, service: impl FnMut() -> u64 + 'static) -> Self {
        let mut pool = Pool::default();
        pool.enlarge(limit, None);
        Self {
            output: Output::new(Span::picos(CELL), Span::ZERO, 0),
            rules: Rules::new(&AtmTraffic::default()),
            pool,
            arrived: VecDeque::new(),
            waits: Vec::new(),
            lost: 0,
            service: Box::new(service),
        }
    }

    fn drain(&mut self, now: u64) {
        while self.output.serving.is_some() && self.output.until.as_picos() <= now {
            let at = self.output.until;
            self.output.cell_time = Span::picos((self.service)());
            let (_, next) = self.output.depart(at, &mut self.pool).expect("one leaves");
            if next.is_some() {
                let came = self.arrived.pop_front().expect("it waited");
                self.waits.push(at.as_picos() - came);
            }
        }
    }

    fn arrive(&mut self, now: u64) {
        self.drain(now);
        let cell = Cell {
            pdu: 0,
            vc: 0,
            hop: 0,
            rank: 4,
            last: true,
        };
        if self.output.serving.is_none() {
            self.output.cell_time = Span::picos((self.service)());
        }
        let at = Instant::from_picos(now);
        match self
            .output
            .take(at, cell, Past::First, &self.rules, &mut self.pool)
        {
            Verdict::Sent(_) => self.waits.push(0),
            Verdict::Waits => self.arrived.push_back(now),
            _ => self.lost += 1,
        }
    }

    /// What an arrival at `now` would wait, with cells of one time.
    fn unfinished(&mut self, now: u64) -> u64 {
        self.drain(now);
        let waiting = self.arrived.len() as u64;
        match self.output.serving {
            Some(_) => self.output.until.as_picos() - now + waiting * CELL,
            None => 0,
        }
    }
}

fn uniform(random: &mut Pcg64Mcg) -> f64 {
    (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

fn exponential(random: &mut Pcg64Mcg, mean: f64) -> u64 {
    (-(1.0 - uniform(random)).ln() * mean) as u64
}

/// Mean and standard error over batches.
fn batches(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}

fn near((mean, error): (f64, f64), theory: f64, what: &str) {
    assert!(
        (mean - theory).abs() < 4.0 * error,
        "{what}: {mean} +- {error}, theory {theory}"
    );
    assert!(
        error < 0.1 * theory,
        "{what}: {error} says nothing of {theory}"
    );
}

/// P(W > x) of M/D/1.
fn md1_above(rho: f64, x: f64) -> f64 {
    let mut sum = 0.0;
    let (mut k, mut factorial) = (0.0, 1.0);
    while k <= x {
        let a = rho * (k - x);
        sum += a.powf(k) / factorial * (-a).exp();
        k += 1.0;
        factorial *= k;
    }
    1.0 - (1.0 - rho) * sum
}

#[test]
fn poisson_cells_wait_as_in_m_d_1() {
    for (rho, mean) in [(0.5, 0.5), (0.8, 2.0), (0.9, 4.5), (0.95, 9.5)] {
        let mut random = Pcg64Mcg::seed_from_u64(4);
        let mut line = Line::new(u64::MAX, || CELL);
        let mut now = 0;
        let (mut means, mut above) = (Vec::new(), Vec::new());
        for _ in 0..40 {
            line.waits.clear();
            for _ in 0..100_000 {
                now += exponential(&mut random, CELL as f64 / rho);
                line.arrive(now);
            }
            let n = line.waits.len() as f64;
            means.push(line.waits.iter().sum::<u64>() as f64 / n / CELL as f64);
            above.push(line.waits.iter().filter(|w| **w > 5 * CELL).count() as f64 / n);
        }
        near(batches(&means), mean, &format!("mean wait at {rho}"));
        if rho > 0.5 {
            let theory = md1_above(rho, 5.0);
            near(batches(&above), theory, &format!("P(W > 5) at {rho}"));
        }
    }
    // The table's own figures.
    for (rho, x, want) in [
        (0.8, 5.0, 1.01e-1),
        (0.9, 10.0, 1.18e-1),
        (0.95, 20.0, 1.26e-1),
    ] {
        assert!((md1_above(rho, x) / want - 1.0).abs() < 0.01, "{rho} {x}");
    }
}

/// Sources, period, and how likely more than so many cells are to wait.
type Row = (u64, u64, [(u64, f64); 4]);

#[test]
fn periodic_sources_queue_as_in_nd_d_1() {
    const SAMPLES: u64 = 20_000;
    let rows: [Row; 4] = [
        (
            40,
            50,
            [(2, 3.00e-1), (5, 3.15e-2), (10, 1.17e-4), (15, 3.5e-8)],
        ),
        (
            160,
            200,
            [(2, 3.48e-1), (5, 7.54e-2), (10, 3.79e-3), (15, 1.09e-4)],
        ),
        (
            45,
            50,
            [(2, 5.09e-1), (5, 1.10e-1), (10, 1.52e-3), (15, 2.2e-6)],
        ),
        (
            190,
            200,
            [(2, 7.52e-1), (5, 4.43e-1), (10, 1.22e-1), (20, 1.99e-3)],
        ),
    ];
    for (sources, period, tails) in rows {
        let mut random = Pcg64Mcg::seed_from_u64(sources);
        let mut above = [0u64; 4];
        for _ in 0..SAMPLES {
            let mut draw = || random.next_u64() % (period * CELL);
            let mut phases: Vec<u64> = (0..sources).map(|_| draw()).collect();
            phases.sort_unstable();
            let look = period * CELL + draw();
            let mut line = Line::new(u64::MAX, || CELL);
            let second = phases.iter().map(|phase| phase + period * CELL);
            for at in phases
                .iter()
                .copied()
                .chain(second)
                .filter(|at| *at <= look)
            {
                line.arrive(at);
            }
            let unfinished = line.unfinished(look);
            for (count, (x, _)) in above.iter_mut().zip(&tails) {
                *count += u64::from(unfinished > x * CELL);
            }
        }
        for (count, (x, probability)) in above.into_iter().zip(tails) {
            let expected = probability * SAMPLES as f64;
            let sigma = (expected * (1.0 - probability)).sqrt();
            let off = (count as f64 - expected).abs();
            assert!(
                off < 4.0 * sigma + 2.0,
                "{sources} {x}: {count}, {expected}"
            );
        }
    }
}

/// Cells of exponential length: K in the system are one being sent and K - 1 that wait.
#[test]
fn a_finite_buffer_loses_as_m_m_1_k() {
    let rho = 0.9f64;
    for (k, published) in [(10u64, 5.08e-2), (50, 5.18e-4)] {
        let mut services = Pcg64Mcg::seed_from_u64(k);
        let mut random = Pcg64Mcg::seed_from_u64(k + 1);
        let mut line = Line::new(k - 1, move || exponential(&mut services, CELL as f64));
        let (mut now, mut shares) = (0, Vec::new());
        for _ in 0..60 {
            let before = line.lost;
            for _ in 0..100_000 {
                now += exponential(&mut random, CELL as f64 / rho);
                line.arrive(now);
            }
            line.waits.clear();
            shares.push((line.lost - before) as f64 / 1e5);
        }
        let power = rho.powi(k as i32);
        let theory = (1.0 - rho) * power / (1.0 - power * rho);
        assert!((theory / published - 1.0).abs() < 0.01, "{theory}");
        near(batches(&shares), theory, &format!("loss at K = {k}"));
    }
}
