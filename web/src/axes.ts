// Ticks of logarithmic axes, and what figures over message size share.
//
// Checked: test/units.spec.ts.
import type { Model, Series } from './model'
import { size } from './units'

/** Powers of two over a range, thinned to at most `most`. */
export function sizeTicks(low: number, high: number, most: number): number[] {
    const first = Math.ceil(Math.log2(Math.max(1, low)))
    const last = Math.floor(Math.log2(Math.max(1, high)))
    const step = Math.max(1, ...[1, 2, 3, 5, 6].filter((each) => (last - first) / each + 1 > most).map((each) => each + 1))
    const ticks: number[] = []
    for (let power = first; power <= last; power += step) ticks.push(2 ** power)
    return ticks
}

/** Decades over a range; with 2 and 5 where there are few. */
export function decadeTicks(low: number, high: number): number[] {
    if (!(low > 0) || !(high > 0)) return []
    const few = Math.log10(high / low) < 2.5
    const ticks: number[] = []
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
        for (const digit of few ? [1, 2, 5] : [1]) {
            const tick = Number(`${digit}e${power}`)
            if (tick >= low * 0.999 && tick <= high * 1.001) ticks.push(tick)
        }
    }
    return ticks
}

/** Round steps from zero to `high`. */
export function linearTicks(high: number): number[] {
    if (!(high > 0)) return []
    const rough = high / 5
    const power = 10 ** Math.floor(Math.log10(rough))
    const step = ([1, 2, 2.5, 5, 10].find((digit) => digit * power >= rough) ?? 10) * power
    return Array.from({ length: Math.floor(high / step) + 1 }, (_, at) => Number((at * step).toPrecision(6)))
}

/** A rule for each MTU, with the networks that have it. */
export function mtuRules(model: Model, visible: Series[], low: number, high: number): { bytes: number; label: string }[] {
    const found = new Map<number, Set<string>>()
    for (const series of visible) {
        const mtu = model.network(series.network)?.row.mtu_bytes
        if (mtu && mtu >= low && mtu <= high) found.set(mtu, (found.get(mtu) ?? new Set()).add(series.network))
    }
    return [...found].sort(([a], [b]) => a - b).map(([bytes]) => ({ bytes, label: `MTU ${size(bytes)}` }))
}

/** The range of some values, widened by a factor on both sides. */
export function spread(values: number[], factor: number): [number, number] {
    const positive = values.filter((value) => value > 0)
    return [Math.min(...positive) / factor, Math.max(...positive) * factor]
}
