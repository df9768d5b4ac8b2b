// Every row of the run, to sort, to filter and to take away as CSV.
//
// Checked: `the table sorts and filters`, `CSV holds every field of every row shown`.
import type { Context } from '../context'
import { TOLD, h, none, rove, section, type Child } from '../dom'
import { distinct } from '../model'
import type { Route } from '../route'
import { copyButton, csv, save } from '../save'
import { count, quantityName, size, value } from '../units'
import type { ResultRow } from '../view'

/** Rows that are shown at first; fewer where each is a card. */
const shownFirst = (): number => (window.innerWidth > 720 ? 60 : 12)

interface Column {
    name: string
    numeric?: boolean
    of: (row: ResultRow) => string | number | null
    show?: (row: ResultRow) => Child
}

const figure = (name: 'min' | 'p50' | 'p90' | 'p99' | 'p999' | 'max' | 'mean' | 'ci95_low' | 'ci95_high', title: string): Column => ({
    name: title, numeric: true, of: (row) => row[name],
    show: (row) => {
        const number = row[name]
        if (number !== null) return value(row.quantity, number)
        return none(row.p50 === null ? row.reason ?? row.status : name === 'p99' ? 'needs 1000 samples' : name === 'p999' ? 'needs 10 000 samples' : row.reason ?? 'a confidence interval needs six repetitions')
    },
})

/** What else was set, as `sndbuf=64KiB streams=4`. */
const knobs = (row: ResultRow): string => Object.entries(row.knobs).map(([name, set]) => `${name}=${set}`).join(' ')

const COLUMNS: Column[] = [
    { name: 'Network', of: (row) => row.network },
    { name: 'Path', of: (row) => row.path },
    { name: 'Method', of: (row) => row.method },
    { name: 'With', of: (row) => knobs(row) || null },
    { name: 'Completion', of: (row) => row.wait },
    { name: 'Load', of: (row) => row.load },
    { name: 'Probe', of: (row) => row.probe, show: (row) => (row.mode ? `${row.probe}, ${row.mode}` : row.probe) },
    { name: 'Size', numeric: true, of: (row) => row.size_bytes, show: (row) => (row.size_bytes === null ? none('of no size') : size(row.size_bytes)) },
    { name: 'Phase', of: (row) => row.phase },
    { name: 'Step', of: (row) => row.step },
    { name: 'Quantity', of: (row) => row.quantity, show: (row) => quantityName(row.quantity) },
    figure('p50', 'Median'), figure('ci95_low', 'From'), figure('ci95_high', 'To'), figure('min', 'Min'), figure('p90', 'p90'), figure('p99', 'p99'), figure('p999', 'p99.9'), figure('max', 'Max'), figure('mean', 'Mean'),
    { name: 'Repetitions', numeric: true, of: (row) => row.launches },
    { name: 'Samples', numeric: true, of: (row) => row.samples, show: (row) => count(row.samples) },
    { name: 'Status', of: (row) => row.status, show: (row) => (row.reason ? h('span', { class: row.status === 'measured' ? 'noted' : 'alarm', tabindex: 0, 'data-tip': row.reason }, row.status) : row.status) },
    { name: 'State', of: (row) => row.state, show: (row) => (row.why ? h('span', { class: 'noted', tabindex: 0, 'data-tip': row.why }, row.state) : row.state) },
    { name: 'Cell', of: (row) => row.cell, show: (row) => h('code', {}, row.cell) },
]

/** The menus in a link. */
const MENUS = ['network', 'quantity', 'status']

class RowTable {
    private readonly body = h('tbody')
    private readonly heads: HTMLElement[]
    private readonly total = h('p', { class: 'axis-note', 'aria-live': 'polite' })
    private readonly more = h('button', { type: 'button', class: 'button', onclick: () => {
        this.limit = Infinity
        this.fill()
    } })
    private readonly text = h('input', { type: 'search', placeholder: 'Filter: ethernet tcp cold …', 'aria-label': 'Filter rows', oninput: () => this.filtered() })
    private readonly menus: HTMLSelectElement[]
    private readonly searched: string[]
    private readonly columns: Column[]
    private sortBy = -1
    private down = false
    private limit = shownFirst()

    constructor(private readonly rows: ResultRow[], private readonly route: Route) {
        // A load, a method and knobs are columns only where there are any, or several.
        const several: Record<string, boolean> = { Load: rows.some((row) => row.load !== null), Method: distinct(rows.map((row) => row.method)).length > 1, With: rows.some((row) => knobs(row) !== '') }
        this.columns = COLUMNS.filter((column) => several[column.name] ?? true)
        this.searched = rows.map((row) => [...this.columns.map((column) => column.of(row)), row.mode, row.reason, quantityName(row.quantity)].filter((part) => part !== null).join(' ').toLowerCase())
        this.heads = this.columns.map((column, at) => h('th', { scope: 'col', class: column.numeric ? 'number' : null }, h('button', { type: 'button', class: 'sort', onclick: () => this.sort(at) }, column.name)))
        const menu = (label: string, of: (row: ResultRow) => string | null): HTMLSelectElement =>
            h('select', { 'aria-label': label, onchange: () => this.filtered() }, h('option', { value: '' }, label), distinct(rows.map(of)).filter((name) => name !== null).map((name) => h('option', { value: name }, name)))
        this.menus = [menu('All networks', (row) => row.network), menu('All quantities', (row) => row.quantity), menu('Any status', (row) => row.status)]
        route.onFollowed(() => this.follow())
        this.follow()
    }

    /** Filters by what a link says. */
    private follow(): void {
        this.text.value = this.route.state.get('q') ?? ''
        this.menus.forEach((menu, at) => (menu.value = this.route.state.get(MENUS[at] ?? '') ?? ''))
        this.fill()
    }

    private filtered(): void {
        this.route.keep([['q', this.text.value], ...this.menus.map((menu, at): [string, string] => [MENUS[at] ?? '', menu.value])])
        this.fill()
    }

    element(): HTMLElement {
        return h('div', { class: 'rows' },
            h('div', { class: 'controls' }, this.text, this.menus, h('span', { class: 'spacer' }), copyButton('Copy CSV', () => csv(this.kept())), saveButton(() => csv(this.kept()))),
            this.total,
            rove(h('div', { class: 'scroll tall', tabindex: 0, role: 'region', 'aria-label': 'All rows' },
                h('table', {}, h('caption', { class: 'unseen' }, 'All rows of the run'), h('thead', {}, h('tr', {}, this.heads)), this.body)), TOLD),
            this.more)
    }

    private kept(): ResultRow[] {
        const words = this.text.value.toLowerCase().split(/\s+/).filter(Boolean)
        const [network, quantity, status] = this.menus.map((menu) => menu.value)
        const kept = this.rows.filter((row, at) => words.every((word) => this.searched[at]?.includes(word)) && (!network || row.network === network) && (!quantity || row.quantity === quantity) && (!status || row.status === status))
        const column = this.columns[this.sortBy]
        if (!column) return kept
        const sign = this.down ? -1 : 1
        return kept.sort((a, b) => {
            const [x, y] = [column.of(a), column.of(b)]
            // What is not there stands last, whichever way.
            if (x === null || y === null) return x === y ? 0 : x === null ? 1 : -1
            return sign * (typeof x === 'number' && typeof y === 'number' ? x - y : String(x).localeCompare(String(y)))
        })
    }

    private sort(at: number): void {
        this.down = this.sortBy === at && !this.down
        this.sortBy = at
        this.heads.forEach((head, nth) => (nth === at ? head.setAttribute('aria-sort', this.down ? 'descending' : 'ascending') : head.removeAttribute('aria-sort')))
        this.fill()
    }

    private fill(): void {
        const kept = this.kept()
        const shown = kept.slice(0, this.limit)
        this.body.replaceChildren(...shown.map((row) => h('tr', {}, this.columns.map((column, at) => {
            const content = column.show?.(row) ?? column.of(row) ?? none(`no ${column.name.toLowerCase()}`)
            return at === 0 ? h('th', { scope: 'row' }, content) : h('td', { class: column.numeric ? 'number' : null, 'data-name': column.name }, content)
        }))))
        for (const told of this.body.querySelectorAll<HTMLElement>(TOLD)) told.tabIndex = -1
        this.total.textContent = `${count(kept.length)} of ${count(this.rows.length)} rows${shown.length < kept.length ? `, the first ${shown.length} shown` : ''}`
        this.more.hidden = shown.length === kept.length
        this.more.textContent = `Show all ${count(kept.length)} rows`
    }
}

function saveButton(text: () => string): HTMLElement {
    return h('button', { type: 'button', class: 'button', onclick: () => save('sonde.csv', new Blob([text()], { type: 'text/csv' })) }, 'Save CSV')
}

/** The section. */
export function rows({ model, route }: Context): HTMLElement {
    const body = model.view.results.length ? new RowTable(model.view.results, route).element() : h('p', { class: 'nothing' }, 'Nothing was measured.')
    const element = section('rows', 'All rows', 'Everything above comes from these. Click a column to sort by it; CSV holds every field of what the filter leaves.',
        model.view.left_out.map((sentence) => h('p', { class: 'axis-note left-out' }, sentence)), body)
    element.classList.add('no-print')
    return element
}
