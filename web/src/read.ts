// The data that the page holds.
//
// Checked: `packed rows are the same rows`, `a page without a run says so`, `a newer schema is refused with its name`.
import { OTHERS, type Other } from './pages'
import type { ResultRow, View } from './view'

/** Rows by column, for a run whose rows would make the page large. */
export interface PackedRows {
    /** How many rows there are. */
    length: number
    columns: PackedColumn[]
}

/** Its values row by row or, where most come more than once, each value and its place in that list for each row: a number of base 64. */
type PackedColumn = { name: keyof ResultRow } & ({ rows: unknown[] } | { values: unknown[]; codes: string })

/** The digits of a place, the first counts most; JSON and HTML escape none of them. One value alone has places without digits. */
export const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

/** What stands in the page: a `View` whose rows may be packed. */
export type Embedded = Omit<View, 'results'> & { results: ResultRow[] | PackedRows }

export type Held = { view: View } | { other: Other } | { message: string; detail: string }

/** The text that the element holds: many data are compressed. */
async function text(): Promise<string> {
    const element = document.getElementById('view')
    const held = element?.textContent ?? 'null'
    if (element?.getAttribute('type') !== 'application/gzip') return held
    if (!('DecompressionStream' in window)) throw new Error('This browser cannot decompress it: one of 2023 or later can.')
    const letters = atob(held)
    const bytes = new Uint8Array(letters.length)
    for (let at = 0; at < letters.length; at += 1) bytes[at] = letters.charCodeAt(at)
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'))).text()
}

/** Reads the element that the crate `report` filled. */
export async function held(): Promise<Held> {
    let data: unknown
    try {
        data = JSON.parse(await text())
    } catch (error) {
        return { message: 'The data of this report cannot be read.', detail: `${error instanceof Error ? error.message : String(error)}. Write it again: sonde report html RUN` }
    }
    if (data === null) return { message: 'This page holds no run.', detail: 'sonde report html RUN writes one with a run in it; sonde assess makes a run.' }
    const schema: unknown = (data as Partial<View>).schema
    if (OTHERS.some((other) => other === schema)) return { other: data as Other }
    if (schema !== 'sonde-view/1') return { message: 'This page cannot show its data.', detail: `It reads ${OTHERS.join(', ')} and sonde-view/1, and was given ${String(schema)}.` }
    const embedded = data as Embedded
    return { view: { ...embedded, results: Array.isArray(embedded.results) ? embedded.results : unpacked(embedded.results) } }
}

/** Rows from their columns. */
export function unpacked({ length, columns }: PackedRows): ResultRow[] {
    const all = Array.from({ length }, () => ({}) as Record<string, unknown>)
    const digits = new Uint8Array(128)
    for (let digit = 0; digit < ALPHABET.length; digit += 1) digits[ALPHABET.charCodeAt(digit)] = digit
    for (const column of columns) {
        if ('rows' in column) {
            all.forEach((row, at) => (row[column.name] = column.rows[at]))
            continue
        }
        const { name, values, codes } = column
        const width = codes.length / Math.max(1, length)
        all.forEach((row, at) => {
            let place = 0
            for (let nth = 0; nth < width; nth += 1) place = place * ALPHABET.length + (digits[codes.charCodeAt(at * width + nth)] ?? 0)
            row[name] = values[place]
        })
    }
    return all as unknown as ResultRow[]
}
