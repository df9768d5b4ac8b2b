//! What a message's time is made of: a part for the message, one for each frame and one for each byte.
//!
//! Model:   ns = m + f·frames + b·bytes with m, f, b ≥ 0, by least absolute deviations relative to the measured time, so
//!          that a size with a trouble of its own, however large, bends nothing, and small messages count as much as
//!          large ones. Such an optimum goes exactly through as many points as it has parameters that are not zero: all such
//!          fits are tried. Where the frames follow from the other two within 2 % (all messages in one frame, or all long)
//!          their cost cannot be told apart, and f is left out.
//! Source:  Hockney 1994 for m and b; Bloomfield & Steiger, Least Absolute Deviations, §1.3 for the vertices. Deviations: none.
//! Units:   nanoseconds, picoseconds for a byte, both to the nearest; residuals in thousandths of the measured, rounded up.
//! Checked: `parameters_are_found_again`, `an_outlier_bends_nothing`, `collinear_frames_have_no_cost`,
//!          `nothing_is_negative`, `too_few_sizes_are_no_fit`.

/// A measured message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FitPoint {
    /// User bytes.
    pub size_bytes: u64,
    /// Frames that carry them.
    pub frames: u64,
    /// The time, for example the median of half round trips.
    pub ns: u64,
}

/// What a message's time is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fit {
    /// For a message of any size.
    pub per_message_ns: u64,
    /// For each frame; `None` where it cannot be told from the other two, which then hold it.
    pub per_frame_ns: Option<u64>,
    /// For each byte.
    pub per_byte_ps: u64,
    /// The largest deviation of a point, in thousandths of it.
    pub residual_per_mille_max: u64,
}

/// Sizes that are needed where frames are told apart: one more than there are parameters.
const SIZES_FOR_FRAMES: usize = 4;
/// Below this part of its length the column of frames counts as made of the other two.
const OWN_PART_MIN: f64 = 0.02;

/// One for a message, its frames, its bytes, each over the measured time: a perfect fit gives 1.
type Row = [f64; 3];

/// Fits `points`, in any order; those of no time are left out. `None` below two sizes.
pub fn fit(points: &[FitPoint]) -> Option<Fit> {
    let measured: Vec<_> = points.iter().filter(|point| point.ns > 0).collect();
    let mut sizes: Vec<u64> = measured.iter().map(|point| point.size_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    if sizes.len() < 2 {
        return None;
    }
    let rows: Vec<Row> = measured
        .iter()
        .map(|point| {
            [1.0, point.frames as f64, point.size_bytes as f64].map(|x| x / point.ns as f64)
        })
        .collect();
    let framed = sizes.len() >= SIZES_FOR_FRAMES && own_part(&rows) >= OWN_PART_MIN;
    let cost = best(&rows, framed)?;
    let worst = rows
        .iter()
        .map(|row| residual(row, &cost))
        .fold(0.0, f64::max);
    Some(Fit {
        per_message_ns: cost[0].round() as u64,
        per_frame_ns: framed.then(|| cost[1].round() as u64),
        per_byte_ps: (cost[2] * 1_000.0).round() as u64,
        // What rounding of the arithmetic leaves of a perfect fit is none.
        residual_per_mille_max: (worst * 1_000.0 - 1e-6).ceil().max(0.0) as u64,
    })
}

fn residual(row: &Row, cost: &Row) -> f64 {
    (1.0 - dot(row, cost)).abs()
}

fn dot(a: &Row, b: &Row) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Of the column of frames, the part that the other two columns do not explain.
fn own_part(rows: &[Row]) -> f64 {
    let column = |index: usize| rows.iter().map(move |row| row[index]);
    let product = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
    let without = |from: Vec<f64>, base: &[f64]| -> Vec<f64> {
        let length = product(base, base);
        let share = if length > 0.0 {
            product(&from, base) / length
        } else {
            0.0
        };
        from.iter().zip(base).map(|(x, b)| x - share * b).collect()
    };
    let [message, frames, bytes] = [0, 1, 2].map(|index| column(index).collect::<Vec<f64>>());
    let length = product(&frames, &frames).sqrt();
    let bytes = without(bytes, &message);
    let own = without(without(frames, &message), &bytes);
    if length > 0.0 {
        product(&own, &own).sqrt() / length
    } else {
        0.0
    }
}

/// The costs, none negative, with the least sum of absolute relative deviations; of equal ones that with fewest parts.
fn best(rows: &[Row], framed: bool) -> Option<Row> {
    let mut found: Option<(f64, Row)> = None;
    let mut consider = |cost: Row| {
        if cost.iter().all(|part| part.is_finite() && *part >= 0.0) {
            let sum: f64 = rows.iter().map(|row| residual(row, &cost)).sum();
            if found.is_none_or(|(least, _)| sum < least - 1e-12) {
                found = Some((sum, cost));
            }
        }
    };
    let columns: &[usize] = if framed { &[0, 1, 2] } else { &[0, 2] };
    for (i, first) in rows.iter().enumerate() {
        for &a in columns {
            consider(solve([first, first, first], [a, a, a], 1));
        }
        for (j, second) in rows.iter().enumerate().skip(i + 1) {
            for (a, b) in [(0, 2), (0, 1), (1, 2)] {
                if columns.contains(&a) && columns.contains(&b) {
                    consider(solve([first, second, second], [a, b, b], 2));
                }
            }
            for third in rows.iter().skip(if framed { j + 1 } else { rows.len() }) {
                consider(solve([first, second, third], [0, 1, 2], 3));
            }
        }
    }
    found.map(|(_, cost)| cost)
}

/// The costs of the first `count` of `columns` that go through the first `count` of `points`, by Cramer's rule; not finite
/// where none do.
fn solve(points: [&Row; 3], columns: [usize; 3], count: usize) -> Row {
    // What is not asked for becomes the unit matrix.
    let mut matrix = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
    let mut wanted = [0.0; 3];
    for row in 0..count {
        for column in 0..count {
            matrix[row][column] = points[row][columns[column]];
        }
        wanted[row] = 1.0;
    }
    let whole = determinant(&matrix);
    let mut cost = [0.0; 3];
    for column in 0..count {
        let mut replaced = matrix;
        for row in 0..3 {
            replaced[row][column] = wanted[row];
        }
        cost[columns[column]] = determinant(&replaced) / whole;
    }
    cost
}

fn determinant(m: &[Row; 3]) -> f64 {
    m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1])
        - m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0])
        + m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0])
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [u64; 12] = [
        1, 64, 256, 1_024, 1_448, 1_449, 2_896, 4_096, 16_384, 65_536, 262_144, 1_048_576,
    ];

    /// A point of known costs, in frames of 1448 B.
    fn point(size_bytes: u64, message: u64, frame: u64, byte_ps: u64) -> FitPoint {
        let frames = size_bytes.div_ceil(1_448);
        let ns = message + frame * frames + byte_ps * size_bytes / 1_000;
        FitPoint {
            size_bytes,
            frames,
            ns,
        }
    }

    fn close(found: u64, wanted: u64) -> bool {
        found.abs_diff(wanted) <= wanted / 100 + 1
    }

    #[test]
    fn parameters_are_found_again() {
        for (message, frame, byte_ps) in [
            (20_000, 1_500, 8_000),
            (5_000, 6_720, 80_000),
            (5_000, 0, 8_000),
        ] {
            let points = SIZES.map(|size| point(size, message, frame, byte_ps));
            let fit = fit(&points).unwrap();
            assert!(close(fit.per_message_ns, message), "{fit:?}");
            assert!(close(fit.per_frame_ns.unwrap(), frame), "{fit:?}");
            assert!(close(fit.per_byte_ps, byte_ps), "{fit:?}");
            assert!(fit.residual_per_mille_max <= 1, "{fit:?}");
        }
        // Where a message costs as much as 70 frames' bytes, noise could move a frame's cost anywhere.
        let hidden = fit(&SIZES.map(|size| point(size, 100_000, 0, 1_000))).unwrap();
        assert_eq!(
            (hidden.per_frame_ns, hidden.per_message_ns),
            (None, 100_000)
        );
    }

    #[test]
    fn an_outlier_bends_nothing() {
        let mut points = SIZES.map(|size| point(size, 20_000, 1_500, 8_000));
        // A delayed acknowledgement of 40 ms.
        points[3].ns += 40_000_000;
        let fit = fit(&points).unwrap();
        assert!(
            close(fit.per_message_ns, 20_000) && close(fit.per_byte_ps, 8_000),
            "{fit:?}"
        );
        assert!(close(fit.per_frame_ns.unwrap(), 1_500), "{fit:?}");
        assert!(fit.residual_per_mille_max > 990, "{fit:?}");
    }

    #[test]
    fn noise_of_some_per_cent_moves_the_costs_by_as_much() {
        let mut points = SIZES.map(|size| point(size, 20_000, 0, 8_000));
        for (index, point) in points.iter_mut().enumerate() {
            point.ns = point.ns * [98, 101, 102, 99, 100, 103, 97, 100][index % 8] / 100;
        }
        let fit = fit(&points).unwrap();
        assert!(fit.per_message_ns.abs_diff(20_000) < 1_500, "{fit:?}");
        assert!(fit.per_byte_ps.abs_diff(8_000) < 500, "{fit:?}");
        assert!(fit.residual_per_mille_max < 80, "{fit:?}");
    }

    #[test]
    fn collinear_frames_have_no_cost() {
        let one_frame = [1, 64, 256, 512, 1_024].map(|size| point(size, 20_000, 1_500, 8_000));
        let fitted = fit(&one_frame).unwrap();
        assert_eq!((fitted.per_frame_ns, fitted.per_message_ns), (None, 21_500));
        let none = SIZES.map(|size| FitPoint {
            frames: 0,
            ..point(size, 20_000, 0, 8_000)
        });
        assert_eq!(fit(&none).unwrap().per_frame_ns, None);
        let whole_frames = [10, 20, 40, 80].map(|n| point(n * 1_448, 20_000, 1_500, 8_000));
        let fitted = fit(&whole_frames).unwrap();
        assert_eq!(fitted.per_frame_ns, None);
        assert!(
            close(fitted.per_byte_ps, 8_000 + 1_500_000 / 1_448),
            "{fitted:?}"
        );
    }

    #[test]
    fn nothing_is_negative() {
        // The time falls with the size: no cost of a byte may be negative.
        let falling = [(1, 900), (100, 600), (10_000, 500), (100_000, 400)];
        let points = falling.map(|(size_bytes, ns)| FitPoint {
            size_bytes,
            frames: 1,
            ns,
        });
        let fit = fit(&points).unwrap();
        assert_eq!((fit.per_byte_ps, fit.per_frame_ns), (0, None));
        assert!((400..=900).contains(&fit.per_message_ns), "{fit:?}");
    }

    #[test]
    fn too_few_sizes_are_no_fit() {
        let point = |size_bytes, ns| FitPoint {
            size_bytes,
            frames: 1,
            ns,
        };
        assert_eq!(fit(&[]), None);
        assert_eq!(fit(&[point(1, 10), point(1, 11)]), None);
        assert_eq!(fit(&[point(1, 10), point(1_000, 0)]), None);
        let two = fit(&[point(1, 1_001), point(1_001, 2_001)]).unwrap();
        assert_eq!(
            (
                two.per_message_ns,
                two.per_byte_ps,
                two.residual_per_mille_max
            ),
            (1_000, 1_000, 0)
        );
    }
}
