//! How frames of a flow follow each other: the distances, drawn with integers alone.
//!
//! Model:   exponential E = -ln U; geometric 1 + floor(E / -ln(1 - p)); Pareto U^(-2/3) for shape 1.5. Logarithms and powers
//!          of two come from tables of 256 steps with straight lines between them (off by less than 3e-6), so that every
//!          machine draws the same. A Pareto draw ends at 2^24 times its least: its mean is 0.02 % short of 3.
//! Source:  inversion; Leland, Taqqu, Willinger, Wilson 1994 and Willinger et al. 1997 (on and off of infinite variance: Hurst
//!          parameter (3 - shape) / 2 = 0.75 of the sum). Deviations: on-lengths are whole frames, the rest is carried over.
//! Units:   picoseconds; `_q32` has 32 bits after the point, `_q60` 60.
//! Checked: `the_draws_follow_their_laws`, `the_rate_is_met`, `logarithms_are_exact_enough`.

use crate::Law;
use rand_core::Rng;
use rand_pcg::Pcg64Mcg;
use sonde_units::{Ratio, Span};

const ONE_Q32: u64 = 1 << 32;
/// ln 2.
const LN2_Q32: u64 = 2_977_044_472;
const LN2_Q60: u128 = 799_144_290_325_165_979;
/// No distance is longer: 53 days.
const GAP_MAX: u64 = 1 << 62;
/// The longest Pareto draw, as a power of two times the least.
const PARETO_MAX_LOG2: u64 = 24;
/// 3, the mean of a Pareto draw of shape 1.5, times its least.
const PARETO_MEAN: u64 = 3;

/// log2 of `m`, which is 1 to below 2 with 63 bits after the point: `bits` bits after the point, by squaring.
const fn log2(m: u64, bits: u32) -> u64 {
    let (mut m, mut out, mut bit) = (m as u128, 0, 0);
    while bit < bits {
        m = (m * m) >> 63;
        out <<= 1;
        if m >> 64 != 0 {
            m >>= 1;
            out |= 1;
        }
        bit += 1;
    }
    out
}

const fn square_root(n: u128) -> u128 {
    let (mut low, mut high) = (0u128, 1u128 << 63);
    while low < high {
        let middle = (low + high).div_ceil(2);
        if middle * middle <= n {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}

/// log2(1 + i / 256).
const LOG2_Q32: [u64; 257] = {
    let (mut table, mut i) = ([ONE_Q32; 257], 0);
    while i < 256 {
        table[i] = log2((256 + i as u64) << 55, 32);
        i += 1;
    }
    table
};

/// 2^(i / 256).
const POW2_Q32: [u64; 257] = {
    let (mut step, mut halvings) = (2u128 << 60, 0);
    while halvings < 8 {
        step = square_root(step << 60);
        halvings += 1;
    }
    let (mut table, mut power, mut i) = ([0; 257], 1u128 << 60, 0);
    while i < 257 {
        table[i] = (power >> 28) as u64;
        power = (power * step) >> 60;
        i += 1;
    }
    table
};

fn between(table: &[u64; 257], index: u64, rest_q32: u64) -> u64 {
    let (low, high) = (table[index as usize], table[index as usize + 1]);
    low + (((high - low) * rest_q32) >> 32)
}

/// -log2 of an even draw from 0 to 1.
fn bits_q32(draw: u64) -> u64 {
    let draw = draw.max(1);
    let zeros = draw.leading_zeros();
    let m = draw << zeros;
    let fraction = between(&LOG2_Q32, (m >> 55) & 0xff, (m >> 23) & 0xffff_ffff);
    (u64::from(zeros + 1) << 32) - fraction
}

/// An exponential draw of mean 1.
pub(super) fn exponential_q32(draw: u64) -> u64 {
    times_q32(bits_q32(draw), LN2_Q32)
}

/// A Pareto draw of shape 1.5 and least value 1.
fn pareto_q32(draw: u64) -> u64 {
    let power = (bits_q32(draw) * 2 / 3).min(PARETO_MAX_LOG2 << 32);
    let mantissa = between(&POW2_Q32, (power >> 24) & 0xff, (power & 0xff_ffff) << 8);
    mantissa << (power >> 32)
}

fn times_q32(value: u64, factor_q32: u64) -> u64 {
    let product = (u128::from(value) * u128::from(factor_q32)) >> 32;
    u64::try_from(product).unwrap_or(GAP_MAX).min(GAP_MAX)
}

/// -ln(1 - p); none where p is 1 or so close to it that every trial hits.
fn rate_q60(p: Ratio) -> Option<u128> {
    let (hits, all) = p.parts();
    let misses = (u128::from(all.saturating_sub(hits)) << 64) / u128::from(all);
    let misses = u64::try_from(misses).unwrap_or(u64::MAX);
    if misses == 0 {
        return None;
    }
    let zeros = misses.leading_zeros();
    let log = (u128::from(zeros + 1) << 60) - u128::from(log2(misses << zeros, 60));
    Some(((log * LN2_Q60) >> 60).max(1))
}

/// 1, 2, 3, … trials until the first hit.
fn trials(rate_q60: Option<u128>, draw: u64) -> u64 {
    let Some(rate) = rate_q60 else {
        return 1;
    };
    let misses = (u128::from(exponential_q32(draw)) << 28) / rate;
    u64::try_from(misses).unwrap_or(GAP_MAX).min(GAP_MAX) + 1
}

/// What a law remembers.
#[derive(Clone, Copy, Debug)]
enum State {
    Constant {
        gap_q32: u128,
        carried_q32: u128,
    },
    Poisson {
        mean: u64,
    },
    Geometric {
        rate_q60: Option<u128>,
    },
    OnOff {
        silence: u64,
        rate_q60: Option<u128>,
        left: u64,
    },
    SelfSimilar {
        silence_least: u64,
        burst_least_q32: u64,
        carried_q32: u64,
        left: u64,
    },
}

/// The distances between frames of one length, by one law.
#[derive(Clone, Copy, Debug)]
pub struct Distances {
    /// A frame's time on the line.
    unit: u64,
    state: State,
}

impl Distances {
    /// Frames that take `unit` each and shall load `rho` of the line, which is above 0 and at most 1. None for a replay.
    pub fn new(law: Law, unit: Span, rho: Ratio) -> Option<Self> {
        let unit = unit.as_picos();
        let (n, d) = rho.parts();
        let (n, d) = (u128::from(n), u128::from(d));
        let of_rho = |n: u128, d: u128| {
            let picos = (u128::from(unit) * d).div_ceil(n);
            u64::try_from(picos).unwrap_or(GAP_MAX).min(GAP_MAX)
        };
        // Silences of a burst of one frame: unit * (1 / rho - 1).
        let silence = |burst: u32| of_rho(n, d - n).saturating_mul(burst.into()).min(GAP_MAX);
        let state = match law {
            Law::Constant => State::Constant {
                gap_q32: {
                    let product = u128::from(unit) * d;
                    ((product / n).min(GAP_MAX.into()) << 32) + ((product % n) << 32).div_ceil(n)
                },
                carried_q32: 0,
            },
            Law::Poisson => State::Poisson { mean: of_rho(n, d) },
            Law::Geometric => State::Geometric {
                rate_q60: rate_q60(rho),
            },
            Law::OnOff(burst) => State::OnOff {
                silence: silence(burst),
                rate_q60: rate_q60(Ratio::new(1, burst.into())),
                left: 0,
            },
            Law::SelfSimilar(burst) => State::SelfSimilar {
                silence_least: silence(burst) / PARETO_MEAN,
                burst_least_q32: (u64::from(burst) << 32) / PARETO_MEAN,
                carried_q32: 0,
                left: 0,
            },
            Law::Replay => return None,
        };
        Some(Self { unit, state })
    }

    /// From `now` to the first frame.
    pub fn first(&mut self, now: u64, random: &mut Pcg64Mcg) -> u64 {
        match self.state {
            State::Constant { gap_q32, .. } => {
                let gap = u64::try_from(gap_q32 >> 32).unwrap_or(GAP_MAX);
                Ratio::new(random.next_u64() >> 1, 1 << 63).of(gap)
            }
            State::Poisson { .. } => self.next(random),
            // Slots are the same for all: multiples of a frame's time.
            State::Geometric { .. } => {
                let into = now.checked_rem(self.unit).unwrap_or(0);
                let to_slot = if into == 0 { 0 } else { self.unit - into };
                to_slot + self.next(random) - self.unit
            }
            State::OnOff { .. } | State::SelfSimilar { .. } => self.next(random) - self.unit,
        }
    }

    /// From one frame to the next.
    pub fn next(&mut self, random: &mut Pcg64Mcg) -> u64 {
        let unit = self.unit;
        let gap = match &mut self.state {
            State::Constant {
                gap_q32,
                carried_q32,
            } => {
                let sum = *gap_q32 + *carried_q32;
                *carried_q32 = sum & u128::from(ONE_Q32 - 1);
                u64::try_from(sum >> 32).unwrap_or(GAP_MAX)
            }
            State::Poisson { mean } => times_q32(*mean, exponential_q32(random.next_u64())),
            State::Geometric { rate_q60 } => {
                unit.saturating_mul(trials(*rate_q60, random.next_u64()))
            }
            State::OnOff { left, .. } | State::SelfSimilar { left, .. } if *left > 0 => {
                *left -= 1;
                unit
            }
            State::OnOff {
                silence,
                rate_q60,
                left,
            } => {
                *left = trials(*rate_q60, random.next_u64()) - 1;
                unit + times_q32(*silence, exponential_q32(random.next_u64()))
            }
            State::SelfSimilar {
                silence_least,
                burst_least_q32,
                carried_q32,
                left,
            } => {
                let mut silence = 0u64;
                while *carried_q32 < ONE_Q32 {
                    let length = times_q32(*burst_least_q32, pareto_q32(random.next_u64()));
                    *carried_q32 += length;
                    let quiet = times_q32(*silence_least, pareto_q32(random.next_u64()));
                    silence = silence.saturating_add(quiet).min(GAP_MAX);
                }
                *left = (*carried_q32 >> 32) - 1;
                *carried_q32 &= ONE_Q32 - 1;
                unit + silence
            }
        };
        gap.min(GAP_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng;

    fn random() -> Pcg64Mcg {
        Pcg64Mcg::seed_from_u64(11)
    }

    #[test]
    fn logarithms_are_exact_enough() {
        let mut random = random();
        for shift in (0..64).chain([0; 2_000]) {
            let draw = (random.next_u64() >> shift).max(1);
            let want = 64.0 - (draw as f64).log2();
            let got = bits_q32(draw) as f64 / ONE_Q32 as f64;
            assert!((got - want).abs() < 3e-6, "{draw}: {got} for {want}");
        }
        for (n, d) in [
            (1, 1_000_000_000u64),
            (1, 50),
            (1, 2),
            (9, 10),
            (999, 1_000),
        ] {
            let want = -(-(n as f64) / d as f64).ln_1p();
            let got = rate_q60(Ratio::new(n, d)).unwrap() as f64 / (1u64 << 60) as f64;
            assert!((got / want - 1.0).abs() < 1e-6, "{n}/{d}: {got} for {want}");
        }
        assert_eq!(rate_q60(Ratio::ONE), None);
        assert_eq!(POW2_Q32[128], 6_074_000_999);
        assert_eq!((POW2_Q32[0], POW2_Q32[256] + 1), (ONE_Q32, 2 * ONE_Q32));
    }

    /// The largest distance between the distribution of `draws` and `wanted`, times the root of their number.
    fn kolmogorov_smirnov(mut draws: Vec<f64>, wanted: impl Fn(f64) -> f64) -> f64 {
        draws.sort_by(f64::total_cmp);
        let n = draws.len() as f64;
        let apart = draws.iter().enumerate().map(|(i, x)| {
            let want = wanted(*x);
            (want - i as f64 / n)
                .abs()
                .max(((i + 1) as f64 / n - want).abs())
        });
        apart.fold(0.0, f64::max) * n.sqrt()
    }

    #[test]
    fn the_draws_follow_their_laws() {
        let mut random = random();
        let mut draws = |law: fn(u64) -> u64| {
            let draw = |_| law(random.next_u64()) as f64 / ONE_Q32 as f64;
            (0..200_000).map(draw).collect::<Vec<_>>()
        };
        // 1.95 is passed by one right law in a thousand.
        let exponential = kolmogorov_smirnov(draws(exponential_q32), |x| 1.0 - (-x).exp());
        assert!(exponential < 1.95, "{exponential}");
        let pareto = kolmogorov_smirnov(draws(pareto_q32), |x| 1.0 - x.powf(-1.5));
        assert!(pareto < 1.95, "{pareto}");
        // The test itself can tell a wrong law.
        assert!(kolmogorov_smirnov(draws(exponential_q32), |x| 1.0 - (-1.01 * x).exp()) > 1.95);
        let rate = rate_q60(Ratio::new(1, 5));
        let mut counts = [0u64; 12];
        for _ in 0..200_000 {
            let trials = trials(rate, random.next_u64());
            counts[(trials as usize).min(12) - 1] += 1;
        }
        let mut chi_square = 0.0;
        for (i, count) in counts.iter().enumerate() {
            let tail = 0.8f64.powi(i as i32);
            let want = 200_000.0 * if i == 11 { tail } else { 0.2 * tail };
            chi_square += (*count as f64 - want).powi(2) / want;
        }
        // Eleven degrees of freedom: 31.3 is passed once in a thousand.
        assert!(chi_square < 31.3, "{chi_square}");
    }

    #[test]
    fn the_rate_is_met() {
        let unit = Span::nanos(2_831);
        for law in [
            Law::Constant,
            Law::Poisson,
            Law::Geometric,
            Law::OnOff(20),
            Law::OnOff(1),
        ] {
            for rho in [Ratio::new(1, 1_000), Ratio::new(3, 5), Ratio::ONE] {
                let (mut random, mut sum) = (random(), 0u128);
                let mut distances = Distances::new(law, unit, rho).unwrap();
                distances.first(0, &mut random);
                for _ in 0..400_000 {
                    let gap = distances.next(&mut random);
                    // Only independent frames come closer than they leave.
                    assert!(law == Law::Poisson || gap >= unit.as_picos());
                    sum += u128::from(gap);
                }
                let (n, d) = rho.parts();
                let want = unit.as_picos() as f64 * d as f64 / n as f64;
                let error = sum as f64 / 400_000.0 / want - 1.0;
                let bound = match law {
                    Law::Constant => 1e-9,
                    Law::OnOff(20) => 0.06,
                    _ => 0.008,
                };
                assert!(error.abs() < bound, "{law:?} {rho}: {error}");
            }
        }
    }
}
