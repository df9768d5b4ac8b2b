// What a tooltip says of a row.
import { none, type Child } from './dom'
import type { ResultRow } from './view'
import { count, quantityName, size, value } from './units'

/** The interval of a row's median, or the reason why there is none. */
export function interval(row: ResultRow): Child {
    if (row.ci95_low === null || row.ci95_high === null) {
        return none(row.reason ?? (row.launches < 6 ? `${row.launches} ${row.launches === 1 ? 'repetition' : 'repetitions'}; a confidence interval needs six` : 'not worked out'))
    }
    const [low, high] = [value(row.quantity, row.ci95_low), value(row.quantity, row.ci95_high)]
    const unit = /[^0-9.]+$/.exec(high)?.[0] ?? ''
    return `${unit && low.endsWith(unit) ? low.slice(0, -unit.length) : low} … ${high}`
}

/** The figures of a row, by name. */
export function figures(row: ResultRow): [string, Child][] {
    return [
        ['size', row.size_bytes === null ? none('of no size') : size(row.size_bytes)],
        [`median ${quantityName(row.quantity)}`, row.p50 === null ? none(row.reason ?? 'not measured') : value(row.quantity, row.p50)],
        ['95 % interval', interval(row)],
        ['p99', row.p99 === null ? none('needs 1000 samples') : value(row.quantity, row.p99)],
        ['repetitions · samples', `${row.launches} · ${count(row.samples)}`],
    ]
}
