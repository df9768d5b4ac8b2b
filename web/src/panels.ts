// Curves of all networks in one figure, or a figure for each network: the reader's choice.
//
// Model:   in one figure a colour is a network; in a network's own figure it is a path, so that many paths are told apart.
//          Where there are many series each network has its own at first.
// Checked: `many series have a figure for each network`.
import type { Context } from './context'
import { h } from './dom'
import type { Figure, FigureOptions } from './figure'
import { choice, legend } from './legend'
import type { Model, Series } from './model'
import type { Selection } from './selection'

/** The visible series, of one network as they are drawn there; null is all. */
export function shownAs(model: Model, selection: Selection, network: string | null): Series[] {
    if (network === null) return selection.visible
    return selection.visible.filter((series) => series.network === network).map((series) => model.within(series))
}

export interface Panels {
    /** The figures with their legends. */
    plots: HTMLElement
    /** Which; null where there is one network. */
    choose: HTMLElement | null
    redraw: () => void
}

/** `options` gives the figure of a network, and with null that of all. */
export function panels(context: Context, present: (series: Series) => boolean, options: (network: string | null) => FigureOptions): Panels {
    const { model, selection } = context
    const networks = model.networks.filter((network) => model.series.some((series) => series.network === network && present(series)))
    const figures: Figure[] = []
    const figure = (network: string | null): HTMLElement => {
        const made = context.figure(options(network))
        figures.push(made)
        return made.element
    }
    const together = (): HTMLElement => h('div', {}, legend(model, selection, present), figure(null))
    const apart = (): HTMLElement => h('div', { class: 'grid wide apart' }, networks.map((network) => {
        const own = (series: Series): boolean => series.network === network && present(series)
        return h('div', { class: 'panel', 'data-network': network }, legend(model, selection, own, (series) => model.within(series)), figure(network))
    }))
    const made = new Map<string, HTMLElement>()
    const plots = h('div', { class: 'plots' })
    const show = (chosen: string): void => {
        const element = made.get(chosen) ?? (chosen === 'one' ? together() : apart())
        made.set(chosen, element)
        plots.replaceChildren(element)
        redraw()
    }
    // What is not in the page has no width, and is not drawn.
    const redraw = (): void => figures.forEach((one) => one.draw())
    const start = networks.length > 1 && model.crowded ? 'each' : 'one'
    show(start)
    const choose = networks.length > 1 ? choice('Figures', [['one', 'all in one'], ['each', 'one a network']], start, show) : null
    return { plots, choose, redraw }
}
