//! Fourier transforms of eight lines side by side.
//!
//! Model:   the eight values of a point of eight lines are one vector, so that each step of a transform is done to all of
//!          them by the same instructions. Stockham's steps of four (one of two where the length needs it) go back and forth between two
//!          buffers and leave the results in order. The sign of the exponent is +; the other one is the same with real and
//!          imaginary parts exchanged. Nothing is scaled.
//! Source:  Van Loan, Computational Frameworks for the Fast Fourier Transform, §1.7. Deviations: none.
//! Checked: `a_transform_is_the_sum`.

use pulp::Simd;

use super::super::wide::fused;

/// Lines that are transformed together.
pub const LANES: usize = 8;

/// A point of as many lines.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub struct Lanes(pub [f64; LANES]);

impl Lanes {
    const ZERO: Self = Self([0.0; LANES]);

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        let mut sum = self;
        for lane in 0..LANES {
            sum.0[lane] += other.0[lane];
        }
        sum
    }

    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        let mut difference = self;
        for lane in 0..LANES {
            difference.0[lane] -= other.0[lane];
        }
        difference
    }

    #[inline(always)]
    fn negative(self) -> Self {
        let mut negative = self;
        for lane in 0..LANES {
            negative.0[lane] = -self.0[lane];
        }
        negative
    }
}

/// Complex points.
#[derive(Debug, Clone, Copy)]
struct Complex {
    re: Lanes,
    im: Lanes,
}

impl Complex {
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        Self {
            re: self.re.plus(other.re),
            im: self.im.plus(other.im),
        }
    }

    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        Self {
            re: self.re.minus(other.re),
            im: self.im.minus(other.im),
        }
    }

    /// Times i.
    #[inline(always)]
    fn turned(self) -> Self {
        Self {
            re: self.im.negative(),
            im: self.re,
        }
    }

    #[inline(always)]
    fn times<S: Simd>(self, (re, im): (f64, f64)) -> Self {
        let mut product = self;
        for lane in 0..LANES {
            let (a, b) = (self.re.0[lane], self.im.0[lane]);
            product.re.0[lane] = fused::<S>(a, re, -(b * im));
            product.im.0[lane] = fused::<S>(a, im, b * re);
        }
        product
    }
}

/// Points of eight lines, real and imaginary parts apart.
#[derive(Debug)]
pub struct Lines {
    /// Real parts.
    pub re: Vec<Lanes>,
    /// Imaginary parts.
    pub im: Vec<Lanes>,
}

impl Lines {
    /// Room for lines of this length.
    pub fn new(length: usize) -> Self {
        Self {
            re: vec![Lanes::ZERO; length],
            im: vec![Lanes::ZERO; length],
        }
    }
}

/// A half of a buffer each for real and imaginary parts.
type Parts<'a> = (&'a mut [Lanes], &'a mut [Lanes]);

/// The roots of unity of a length: exp(2 pi i k / n).
#[derive(Debug)]
pub struct Roots(Vec<(f64, f64)>);

impl Roots {
    /// Room for those of a length, a power of two.
    pub fn new(length: usize) -> Self {
        assert!(length.is_power_of_two());
        Self(vec![(1.0, 0.0); length])
    }

    /// Makes them.
    pub fn fill(&mut self) {
        let step = std::f64::consts::TAU / self.0.len() as f64;
        for (k, root) in self.0.iter_mut().enumerate() {
            let (sin, cos) = (step * k as f64).sin_cos();
            *root = (cos, sin);
        }
    }

    /// The length.
    pub fn length(&self) -> usize {
        self.0.len()
    }

    /// Transforms what is in the first buffer; the result is there too, the second is used. `back` is the other sign.
    #[inline(always)]
    pub fn transform<S: Simd>(&self, lines: &mut [Lines; 2], back: bool) {
        let n = self.0.len();
        let [first, second] = lines;
        let mut from: Parts<'_> = (&mut first.re[..n], &mut first.im[..n]);
        let mut to: Parts<'_> = (&mut second.re[..n], &mut second.im[..n]);
        if back {
            from = (from.1, from.0);
            to = (to.1, to.0);
        }
        let mut stride = 1;
        let mut steps = 0;
        while n / stride >= 4 {
            self.four::<S>(&from, &mut to, stride);
            stride *= 4;
            (from, to) = (to, from);
            steps += 1;
        }
        if n / stride == 2 {
            two(&from, &mut to);
            steps += 1;
        }
        if steps % 2 == 1 {
            std::mem::swap(first, second);
        }
    }

    /// A step of four: parts of n / stride points become four times as many.
    #[inline(always)]
    fn four<S: Simd>(&self, from: &Parts<'_>, to: &mut Parts<'_>, stride: usize) {
        let n = self.0.len();
        let quarter = n / 4;
        let parts = quarter / stride;
        let from = [0, 1, 2, 3].map(|part| {
            let at = part * quarter..(part + 1) * quarter;
            (&from.0[at.clone()], &from.1[at])
        });
        let outs = (to.0.chunks_exact_mut(4 * stride)).zip(to.1.chunks_exact_mut(4 * stride));
        for (p, (re, im)) in outs.enumerate().take(parts) {
            let [w1, w2, w3] = [1, 2, 3].map(|times| self.0[times * p * stride]);
            let (re0, re) = re.split_at_mut(stride);
            let (re1, re) = re.split_at_mut(stride);
            let (re2, re3) = re.split_at_mut(stride);
            let (im0, im) = im.split_at_mut(stride);
            let (im1, im) = im.split_at_mut(stride);
            let (im2, im3) = im.split_at_mut(stride);
            let at = p * stride..(p + 1) * stride;
            let from = from.map(|(re, im)| (&re[at.clone()], &im[at.clone()]));
            for q in 0..stride {
                let at = |part: usize| Complex {
                    re: from[part].0[q],
                    im: from[part].1[q],
                };
                let (a, b, c, d) = (at(0), at(1), at(2), at(3));
                let (even, odd) = (a.plus(c), b.plus(d));
                let (left, right) = (a.minus(c), b.minus(d).turned());
                let out = even.plus(odd);
                (re0[q], im0[q]) = (out.re, out.im);
                let out = left.plus(right).times::<S>(w1);
                (re1[q], im1[q]) = (out.re, out.im);
                let out = even.minus(odd).times::<S>(w2);
                (re2[q], im2[q]) = (out.re, out.im);
                let out = left.minus(right).times::<S>(w3);
                (re3[q], im3[q]) = (out.re, out.im);
            }
        }
    }
}

/// The last step of two.
#[inline(always)]
fn two(from: &Parts<'_>, to: &mut Parts<'_>) {
    for (from, to) in [(&*from.0, &mut *to.0), (&*from.1, &mut *to.1)] {
        let (a, b) = from.split_at(from.len() / 2);
        let (sum, difference) = to.split_at_mut(from.len() / 2);
        let outs = sum.iter_mut().zip(difference);
        for ((a, b), (sum, difference)) in a.iter().zip(b).zip(outs) {
            *sum = a.plus(*b);
            *difference = a.minus(*b);
        }
    }
}

#[cfg(test)]
mod tests {
    use pulp::Scalar;

    use super::*;

    #[test]
    fn a_transform_is_the_sum() {
        for (n, back) in [(4, false), (8, true), (16, true), (32, false), (64, true)] {
            let mut roots = Roots::new(n);
            roots.fill();
            let mut lines = [Lines::new(n), Lines::new(n)];
            let value = |k: usize, lane: usize| {
                (
                    ((k * 7 + lane * 3) % 11) as f64,
                    ((k * k + lane) % 5) as f64,
                )
            };
            for k in 0..n {
                for lane in 0..LANES {
                    (lines[0].re[k].0[lane], lines[0].im[k].0[lane]) = value(k, lane);
                }
            }
            roots.transform::<Scalar>(&mut lines, back);
            for m in 0..n {
                for lane in 0..LANES {
                    let (mut re, mut im) = (0.0, 0.0);
                    for k in 0..n {
                        let angle = std::f64::consts::TAU * (k * m % n) as f64 / n as f64;
                        let (sin, cos) = if back { -angle } else { angle }.sin_cos();
                        let (a, b) = value(k, lane);
                        re += a * cos - b * sin;
                        im += a * sin + b * cos;
                    }
                    assert!((lines[0].re[m].0[lane] - re).abs() < 1e-10, "{n} {m}");
                    assert!((lines[0].im[m].0[lane] - im).abs() < 1e-10, "{n} {m}");
                }
            }
        }
    }
}
