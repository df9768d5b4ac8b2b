// How a change is written, and on which axis changes are drawn.
//
// Model:   changes are ratios, and equally far up and down on a logarithmic axis. Ticks are round per cents, factors beyond twice.
// Checked: test/units.spec.ts.
import { share, significant } from '../units'

/** A ratio as a change: `+3 %`, `−0.5 %`, `×4`, `÷4`. */
export function change(ratio: number): string {
    if (ratio >= 2) return `×${significant(ratio)}`
    if (ratio > 0 && ratio <= 0.5) return `÷${significant(1 / ratio)}`
    const part = ratio - 1
    return `${part > 0 ? '+' : part < 0 ? '−' : '±'}${share(Math.abs(part))}`
}

const ROUND = [1.01, 1.02, 1.05, 1.1, 1.2, 1.5, 2, 5, 10, 20, 50, 100, 1000]
const LEAST = 46

/** Ticks of an axis from `low` to `high` of so many pixels, none nearer to another than can be read. */
export function changeTicks(low: number, high: number, pixels: number): number[] {
    const place = (ratio: number): number => (Math.log(ratio / low) / Math.log(high / low)) * pixels
    const kept = [1]
    const down = ROUND.map((ratio) => (ratio < 2 ? Number((2 - ratio).toFixed(2)) : 1 / ratio))
    for (const side of [ROUND, down]) {
        // From the far end: it says how wide the axis is.
        for (const ratio of [...side].reverse()) {
            if (ratio < low || ratio > high) continue
            if (kept.every((other) => Math.abs(place(other) - place(ratio)) >= LEAST)) kept.push(ratio)
        }
    }
    return kept.sort((a, b) => a - b)
}

/** Round ticks between two values. */
export function ticksBetween(low: number, high: number, most: number): number[] {
    if (!(high > low)) return [low]
    const rough = (high - low) / most
    const power = 10 ** Math.floor(Math.log10(rough))
    const step = ([1, 2, 2.5, 5, 10].find((digit) => digit * power >= rough) ?? 10) * power
    const first = Math.ceil(low / step)
    return Array.from({ length: Math.floor(high / step) - first + 1 }, (_, at) => Number(((first + at) * step).toPrecision(12)))
}
