// The data that the page holds.
//
// Checked: `packed rows are the same rows`, `a page without a run says so`, `a newer schema is refused with its name`.
import type { ResultRow, View } from './view'

/** Rows by column, for a run whose rows would make the page large. Where `values` is there, `rows` are places in it. */
export interface PackedRows {
    columns: { name: keyof ResultRow; values?: unknown[]; rows: unknown[] }[]
}

/** What stands in the page: a `View` whose rows may be packed. */
export type Embedded = Omit<View, 'results'> & { results: ResultRow[] | PackedRows }

export type Held = { view: View } | { message: string; detail: string }

/** Reads the element that the crate `report` filled. */
export function held(): Held {
    const text = document.getElementById('view')?.textContent ?? 'null'
    let data: unknown
    try {
        data = JSON.parse(text)
    } catch (error) {
        return { message: 'The data of this report cannot be read.', detail: `${error instanceof Error ? error.message : String(error)}. Write it again: sonde report html RUN` }
    }
    if (data === null) return { message: 'This page holds no run.', detail: 'sonde report html RUN writes one with a run in it; sonde assess makes a run.' }
    const schema = (data as Partial<View>).schema
    if (schema !== 'sonde-view/1') return { message: 'This page cannot show its data.', detail: `It reads sonde-view/1, and was given ${String(schema)}.` }
    const embedded = data as Embedded
    return { view: { ...embedded, results: Array.isArray(embedded.results) ? embedded.results : unpacked(embedded.results) } }
}

/** Rows from their columns. */
export function unpacked({ columns }: PackedRows): ResultRow[] {
    const length = columns[0]?.rows.length ?? 0
    return Array.from({ length }, (_, at) =>
        Object.fromEntries(columns.map(({ name, values, rows }) => [name, values ? values[rows[at] as number] : rows[at]])) as unknown as ResultRow)
}
