// Elements of the page. All text goes in as text, never as markup: what a host or a file is called cannot become an element.
//
// Checked: `hostile strings are inert`.
import { NONE } from './units'

export type Child = Node | string | number | null | undefined | false | Child[]
type Attribute = string | number | boolean | null | undefined | ((event: Event) => void)

/** An element: `on…` attributes are listeners, `--…` ones are style properties, null and false ones are left out. */
export function h<K extends keyof HTMLElementTagNameMap>(
    tag: K,
    attributes: Record<string, Attribute> = {},
    ...children: Child[]
): HTMLElementTagNameMap[K] {
    const element = document.createElement(tag)
    for (const [name, value] of Object.entries(attributes)) {
        if (value === null || value === undefined || value === false) continue
        if (typeof value === 'function') element.addEventListener(name.slice(2), value)
        else if (name.startsWith('--') || name === 'width-share') element.style.setProperty(name === 'width-share' ? 'width' : name, String(value))
        else element.setAttribute(name, value === true ? '' : String(value))
    }
    append(element, children)
    return element
}

/** An SVG element. */
export function node<K extends keyof SVGElementTagNameMap>(tag: K, attributes: Record<string, string | number>, text?: string): SVGElementTagNameMap[K] {
    const made = document.createElementNS('http://www.w3.org/2000/svg', tag)
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value))
    if (text !== undefined) made.textContent = text
    return made
}

/** Adds children; what is null or false is left out. */
export function append(parent: Node, children: Child[]): void {
    for (const child of children) {
        if (Array.isArray(child)) append(parent, child)
        else if (child instanceof Node) parent.appendChild(child)
        else if (child !== null && child !== undefined && child !== false) parent.appendChild(document.createTextNode(String(child)))
    }
}

/** A dash for what is not there; the reason shows on hover and on focus, and is read aloud. */
export function none(reason: string): HTMLElement {
    return h('span', { class: 'none', tabindex: 0, 'data-tip': reason, role: 'img', 'aria-label': `not available: ${reason}` }, NONE)
}

/** A value as text, or a dash with the reason. */
export function shown(value: number | null | undefined, format: (value: number) => string, reason: string): Child {
    return value === null || value === undefined ? none(reason) : format(value)
}

/**
 * Makes a region one stop of the tab key: left and right go from one to the next of what `selector` finds in it, Escape to its first
 * stop. The region is that stop where it takes the focus itself, else the first of them is.
 */
export function rove<E extends HTMLElement>(region: E, selector: string): E {
    const all = (): HTMLElement[] => [...region.querySelectorAll<HTMLElement>(selector)]
    const isStop = region.tabIndex >= 0
    const settle = (at: number): void => all().forEach((one, nth) => (one.tabIndex = !isStop && nth === at ? 0 : -1))
    settle(0)
    region.addEventListener('focusin', (event) => settle(Math.max(0, all().indexOf(event.target as HTMLElement))))
    region.addEventListener('keydown', (event) => {
        const found = all()
        const at = found.indexOf(document.activeElement as HTMLElement)
        const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0
        if (event.key === 'Escape' && at >= 0) (isStop ? region : found[0])?.focus()
        if (!step || !found.length) return
        event.preventDefault()
        found[at < 0 ? (step > 0 ? 0 : found.length - 1) : (at + step + found.length) % found.length]?.focus()
    })
    return region
}

/** What in a table says more when it has the focus. */
export const TOLD = '[data-tip][tabindex]'

/** A sentence with what stands between backticks as code. */
export function prose(sentence: string): Child[] {
    return sentence.split('`').map((part, at) => (at % 2 ? h('code', {}, part) : part))
}

/** A section of the page with its heading and a sentence that says how to read it. */
export function section(id: string, title: string, lead: Child, ...children: Child[]): HTMLElement {
    return h('section', { id, 'aria-labelledby': `${id}-title` },
        h('header', { class: 'section-head' }, h('h2', { id: `${id}-title` }, title), lead ? h('p', { class: 'lead' }, lead) : null),
        children)
}

/** A table with a header row; columns whose name begins with `#` hold numbers. */
export function table(caption: string, columns: string[], rows: Child[][], extra: Record<string, Attribute> = {}): HTMLElement {
    const numeric = columns.map((name) => name.startsWith('#'))
    // Where a table is too wide for the window each row is a card, and each cell says what it is.
    const cell = (child: Child, at: number): HTMLElement =>
        at === 0 ? h('th', { scope: 'row' }, child) : h('td', { class: numeric[at] ? 'number' : null, 'data-name': columns[at]?.replace(/^#/, '') }, child)
    return rove(h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': caption },
        h('table', extra,
            h('caption', { class: 'unseen' }, caption),
            h('thead', {}, h('tr', {}, columns.map((name, at) =>
                h('th', { scope: 'col', class: numeric[at] ? 'number' : null }, name.replace(/^#/, ''))))),
            h('tbody', {}, rows.map((row) => h('tr', {}, row.map(cell)))))), TOLD)
}
