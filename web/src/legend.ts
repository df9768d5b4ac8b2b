// Legends and filters: buttons that switch series on and off, with the line and symbol as the figures draw them.
//
// Checked: `every legend button switches its series off and on again`, `a chip switches a whole network`.
import { h, node, rove } from './dom'
import { distinct, type Model, type Series, type SymbolName } from './model'
import type { Selection } from './selection'

const SHAPES: Record<SymbolName, string> = {
    circle: 'M4,0A4,4,0,1,1,-4,0A4,4,0,1,1,4,0Z',
    diamond: 'M0,-5.4L4,0L0,5.4L-4,0Z',
    square: 'M-3.6,-3.6H3.6V3.6H-3.6Z',
    triangle: 'M0,-4.8L4.4,3.4H-4.4Z',
    hexagon: 'M0,-4.5L3.9,-2.2V2.2L0,4.5L-3.9,2.2V-2.2Z',
    star: 'M0,-5L1.2,-1.6L4.8,-1.6L1.9,0.6L3,4.1L0,2L-3,4.1L-1.9,0.6L-4.8,-1.6L-1.2,-1.6Z',
    wye: 'M-1.5,0L-4,-2.6L-2,-4L0,-1.8L2,-4L4,-2.6L1.5,0V4.4H-1.5Z',
    cross: 'M-1.4,-4.4H1.4V-1.4H4.4V1.4H1.4V4.4H-1.4V1.4H-4.4V-1.4H-1.4Z',
}

/** The line and symbol of a series, as in the figures. */
export function glyph(series: Series): SVGSVGElement {
    const svg = node('svg', { viewBox: '-13 -7 26 14', width: 26, height: 14, 'aria-hidden': 'true', class: 'glyph' })
    svg.append(node('path', { d: 'M-13,0H13', stroke: series.colour, 'stroke-width': series.weight }), node('path', { d: SHAPES[series.symbol], fill: series.colour }))
    return svg
}

/** One button a series, grouped by network. Shift-click shows it alone. `present` says which have something to show, `as` how it is drawn. */
export function legend(model: Model, selection: Selection, present: (series: Series) => boolean = () => true, as: (series: Series) => Series = (series) => series): HTMLElement {
    const buttons: [HTMLButtonElement, Series][] = []
    const groups = model.networks.map((network) => {
        const own = model.series.filter((series) => series.network === network && present(series))
        if (!own.length) return null
        return h('div', { class: 'legend-group', role: 'group', 'aria-label': network },
            h('span', { class: 'legend-network' }, network),
            own.map((series) => {
                const button = h('button', {
                    type: 'button', class: 'legend-entry', 'data-series': series.id, 'aria-label': series.label,
                    'data-tip': 'Click: switch off or on. Shift-click: show this one alone.',
                    onclick: (event) => {
                        if ((event as MouseEvent).shiftKey) selection.only([series])
                        else selection.toggle([series])
                    },
                }, glyph(as(series)), series.short)
                buttons.push([button, series])
                return button
            }))
    })
    const update = (): void => {
        for (const [button, series] of buttons) button.setAttribute('aria-pressed', String(selection.shows(series)))
    }
    selection.onChange(update)
    update()
    return rove(h('div', { class: 'legend', role: 'group', 'aria-label': 'Legend: switch series on and off' }, groups), 'button')
}

/** The bar of filters above the figures. */
export function filters(model: Model, selection: Selection): HTMLElement {
    const updates: (() => void)[] = []
    const chip = (label: string, state: () => string, press: () => void, colour?: string): HTMLElement => {
        const button = h('button', { type: 'button', class: 'chip', onclick: press, '--colour': colour }, colour ? h('i', { class: 'swatch' }) : null, label)
        updates.push(() => button.setAttribute('aria-pressed', state()))
        return button
    }
    const of = (label: string, some: Series[], colour?: string): HTMLElement =>
        chip(label, () => selection.pressed(some), () => selection.toggle(some), colour)
    const group = (label: string, chips: HTMLElement[]): HTMLElement | null =>
        chips.length > 1 ? h('div', { class: 'chips', role: 'group', 'aria-label': label }, h('span', { class: 'chips-label' }, label), chips) : null
    const phases = distinct(model.view.results.map((row) => row.phase)).filter((phase) => phase !== null)
    // A knob is a choice where it has several values, its absence among them.
    const names = distinct(model.series.flatMap((series) => Object.keys(series.knobs)))
        .map((name) => [name, distinct(model.series.map((series) => series.knobs[name] ?? null))] as const).filter(([, values]) => values.length > 1)
    const bar = h('div', { class: 'filters', role: 'toolbar', 'aria-label': 'What the figures show' },
        group('Networks', model.networks.filter((network) => model.series.some((series) => series.network === network)).map((network) => of(network, model.series.filter((series) => series.network === network), model.colour(network)))),
        group('Paths', model.paths.map((path) => of(path, model.series.filter((series) => series.path === path)))),
        group('Completion', model.waits.map((wait) => of(wait || 'unsaid', model.series.filter((series) => (series.wait ?? '') === wait)))),
        group('Method', model.methods.map((method) => of(method, model.series.filter((series) => series.method === method)))),
        group('With', names.flatMap(([name, values]) => values.map((value) => of(value === null ? `${name} unset` : `${name}=${value}`, model.series.filter((series) => (series.knobs[name] ?? null) === value))))),
        group('Load', model.loads.map((load) => of(load ?? 'idle', model.series.filter((series) => series.load === load)))),
        group('Phase', phases.map((phase) => chip(phase, () => String(selection.showsPhase(phase)), () => selection.togglePhase(phase)))),
        h('button', { type: 'button', class: 'chip plain', onclick: () => selection.everything() }, 'Show all'))
    const update = (): void => updates.forEach((each) => each())
    selection.onChange(update)
    update()
    return rove(bar, 'button')
}

/** A choice of one among few. */
export function choice(label: string, options: [string, string][], start: string, choose: (value: string) => void): HTMLElement {
    const buttons = options.map(([value, text]) => h('button', {
        type: 'button', 'aria-pressed': String(value === start), 'data-value': value,
        onclick: () => {
            for (const button of buttons) button.setAttribute('aria-pressed', String(button.dataset.value === value))
            choose(value)
        },
    }, text))
    return h('div', { class: 'choice', role: 'group', 'aria-label': label }, buttons)
}
