// Where a kernel ran, in words, and in which order places and loads stand.
//
// Model:   a place is hosts, ranks and path; the network is named where several hosts ran on several networks, or where the same ran
//          on one host beside two of them. Fewer hosts come first, then fewer ranks, then what was planned first.
// Checked: `kernels have a graph each and a curve for each load`.
import { distinct } from './model'
import type { KernelRow } from './view'

const COLOURS = 7

/** Loads by their level, idle first. */
export function loadsOf(rows: KernelRow[]): (string | null)[] {
    return distinct([...rows].sort((a, b) => a.level - b.level).map((row) => row.load))
}

export const colourOf = (loads: (string | null)[], load: string | null): string => `var(--network-${Math.max(0, loads.indexOf(load)) % COLOURS})`
export const loadName = (load: string | null): string => (load === null ? 'idle' : `load ${load}`)

/** The path with what was set of it. */
export function by({ path, knobs }: KernelRow): string {
    const set = Object.entries(knobs).map(([name, value]) => `${name}=${value}`)
    return set.length ? `${path} (${set.join(', ')})` : path
}

const sameKernel = (one: KernelRow, other: KernelRow): boolean => one.kernel === other.kernel && one.class === other.class && one.load === other.load
const samePlace = (one: KernelRow, other: KernelRow): boolean => one.hosts === other.hosts && one.ranks === other.ranks && one.wait === other.wait && by(one) === by(other)

/** Whether the place of a row on one host is known beside several networks. */
function isTwice(row: KernelRow, all: KernelRow[]): boolean {
    const here = all.filter((one) => samePlace(one, row))
    return here.some((one) => here.some((other) => one.network !== other.network && sameKernel(one, other)))
}

/** Its place; `network` names the network of several hosts where there are several. */
export function placeOf(row: KernelRow, all: KernelRow[], network = true): string {
    const waits = distinct(all.filter((one) => one.path === row.path).map((one) => one.wait))
    const wait = waits.length > 1 && row.wait !== null ? ` ${row.wait}` : ''
    if (row.ranks === 1) return `one rank alone${network && isTwice(row, all) ? ` (${row.network})` : ''}`
    const counts = distinct(all.filter((one) => one.ranks > 1 && one.hosts === row.hosts).map((one) => one.ranks))
    const ranks = counts.length > 1 || (row.hosts > 1 && row.ranks !== row.hosts) ? `${row.ranks} × ` : ''
    if (row.hosts === 1) return `1 host${network && isTwice(row, all) ? ` (${row.network})` : ''}, ${ranks}${by(row)}${wait}`
    const apart = all.filter((one) => one.hosts > 1)
    const where = `${row.hosts} hosts, ${ranks}`
    if (!network || distinct(apart.map((one) => one.network)).length < 2) return `${where}${by(row)}${wait}`
    // Where the network tells them apart, as many ranks on as many hosts everywhere need no word.
    const alike = apart.every((one) => one.hosts === row.hosts && one.ranks === row.ranks)
    return `${row.network}, ${alike ? '' : where}${by(row)}${wait}`
}

/** Rows in the order of their places. */
export function byPlace(rows: KernelRow[]): KernelRow[] {
    return [...rows].sort((a, b) => a.hosts - b.hosts || a.ranks - b.ranks)
}

/** Rows of a kernel and class, in the order of the kernels. */
export function groups(all: KernelRow[]): KernelRow[][] {
    const found = new Map<string, KernelRow[]>()
    for (const row of all) {
        const name = JSON.stringify([row.kernel, row.class])
        found.set(name, [...(found.get(name) ?? []), row])
    }
    return [...found.values()]
}

/** A kernel with its class. */
export const kernelName = (row: { kernel: string; class: string }): string => `${row.kernel.toUpperCase()}, class ${row.class}`
