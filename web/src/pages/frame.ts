// What the pages beside a run's have in common: the bar, the head, figures that follow the theme.
import { h, prose, type Child } from '../dom'
import { Figure, type FigureOptions } from '../figure'
import { themeButton } from '../theme'
import { Tooltip } from '../tooltip'
import { comeAnew, historyLink, served } from './served'

/** The figures of a page. */
export class Drawn {
    private readonly figures: Figure[] = []
    private readonly tooltip = new Tooltip()

    figure(options: FigureOptions): Figure {
        const figure = new Figure(options, this.tooltip)
        this.figures.push(figure)
        return figure
    }

    redraw(): void {
        for (const figure of this.figures) figure.draw()
    }
}

export interface Parts {
    /** Of the window. */
    title: string
    /** What kind of page it is. */
    eyebrow: string
    /** What it says, in a sentence. */
    sentence: string
    facts: [string, Child][]
    body: Child[]
    foot: string
    /** The link of the bar that leads here. */
    here: string | null
}

/** Fills the page. */
export function frame(page: HTMLElement, drawn: Drawn, parts: Parts): void {
    document.title = `sonde: ${parts.title}`
    document.body.dataset.view = 'overview'
    const links = served() ? [['/', 'Runs'], [historyLink(null), 'History']] : []
    const main = h('main', { tabindex: -1 },
        h('header', { class: 'masthead' }, h('p', { class: 'eyebrow' }, parts.eyebrow), h('h1', { class: parts.sentence.length > 100 ? 'long' : null }, prose(parts.sentence)),
            h('dl', { class: 'facts' }, parts.facts.map(([name, content]) => h('div', {}, h('dt', {}, name), h('dd', {}, content))))),
        parts.body)
    page.replaceChildren(
        h('a', { class: 'skip', href: '#', onclick: (event) => {
            event.preventDefault()
            main.focus()
        } }, 'Skip to the page'),
        h('nav', { class: 'top', 'aria-label': 'Pages' },
            served() ? h('a', { class: 'brand', href: '/' }, 'sonde') : h('span', { class: 'brand' }, 'sonde'),
            h('div', { class: 'links' }, links.map(([href, name]) => h('a', { href, 'aria-current': href === parts.here ? 'page' : null }, name))),
            themeButton(() => drawn.redraw())),
        main,
        h('footer', { class: 'foot' }, parts.foot))
    drawn.redraw()
    comeAnew()
}
