//! Matrices that were not measured.

use std::collections::BTreeMap;

use super::{KINDS, Kind, Matrix, Pair, Reading, Stage};

/// A matrix of all pairs, each with a little noise.
pub(super) struct Grid {
    hosts: usize,
    readings: BTreeMap<(Stage, Kind, Pair), Reading>,
}

impl Grid {
    /// Noise of three per cent about 100 µs, and 90 Mb/s.
    pub(super) fn healthy(hosts: usize, seed: u64) -> Self {
        Self::noisy(hosts, seed, 0.03)
    }

    /// With so much noise: the deviation of the figures' logarithms.
    pub(super) fn noisy(hosts: usize, seed: u64, share: f64) -> Self {
        let mut grid = Self {
            hosts,
            readings: BTreeMap::new(),
        };
        for stage in [
            Stage::Together,
            Stage::Again,
            Stage::Alone,
            Stage::Reference,
        ] {
            for kind in KINDS {
                for src in 0..hosts {
                    for dst in (0..hosts).filter(|dst| *dst != src) {
                        let draw =
                            noise(&[seed, stage as u64, kind as u64, src as u64, dst as u64]);
                        let base = if kind == Kind::Latency { 1e5 } else { 9e7 };
                        let reading = Reading {
                            value: base * (share * draw).exp(),
                            segments: 1_000,
                            ..Reading::default()
                        };
                        grid.readings.insert((stage, kind, (src, dst)), reading);
                    }
                }
            }
        }
        grid
    }

    /// Makes the pairs that `factor` names so many times worse, in these stages.
    pub(super) fn worsen_in(
        &mut self,
        stages: &[Stage],
        kind: Kind,
        factor: impl Fn(Pair) -> Option<f64>,
    ) {
        for ((stage, one, pair), reading) in &mut self.readings {
            if let (true, true, Some(factor)) =
                (stages.contains(stage), *one == kind, factor(*pair))
            {
                match kind {
                    Kind::Latency => reading.value *= factor,
                    Kind::Stream | Kind::Duplex => reading.value /= factor,
                }
            }
        }
    }

    /// Keeps what was measured of some pairs.
    pub(super) fn keep(&mut self, is_kept: impl Fn(Stage, Pair) -> bool) {
        self.readings
            .retain(|(stage, _, pair), _| is_kept(*stage, *pair));
    }

    pub(super) fn worsen(&mut self, kind: Kind, factor: impl Fn(Pair) -> Option<f64>) {
        let all = [Stage::Together, Stage::Again, Stage::Alone];
        self.worsen_in(&all, kind, factor);
    }

    /// Sets what the kernel counted, in all stages but the reference's.
    pub(super) fn count(&mut self, set: impl Fn(Pair, &mut Reading)) {
        for ((stage, kind, pair), reading) in &mut self.readings {
            if *stage != Stage::Reference && *kind != Kind::Latency {
                set(*pair, reading);
            }
        }
    }

    /// The same of one kind.
    pub(super) fn count_of(&mut self, one: Kind, mut set: impl FnMut(Pair, &mut Reading)) {
        for ((stage, kind, pair), reading) in &mut self.readings {
            if *stage != Stage::Reference && *kind == one {
                set(*pair, reading);
            }
        }
    }

    pub(super) fn matrix(self) -> Matrix {
        Matrix {
            network: "lan".into(),
            hosts: (1..=self.hosts)
                .map(|number| format!("h{number}"))
                .collect(),
            readings: self.readings,
            ..Matrix::default()
        }
    }
}

/// The sum of twelve even draws, about normal, from what names it.
fn noise(words: &[u64]) -> f64 {
    let mut state = 0x5eed_u64;
    let mut next = |word: u64| {
        state = (state ^ word).wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        // What is mixed goes on, so that small words do not fall together.
        state = z ^ (z >> 31);
        state
    };
    for word in words {
        next(*word);
    }
    let draws = (0..12).map(|_| next(0) as f64 / u64::MAX as f64);
    draws.sum::<f64>() - 6.0
}
