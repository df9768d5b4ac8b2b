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

/** A section of the page with its heading and a sentence that says how to read it. */
export function section(id: string, title: string, lead: Child, ...children: Child[]): HTMLElement {
    return h('section', { id, 'aria-labelledby': `${id}-title` },
        h('header', { class: 'section-head' }, h('h2', { id: `${id}-title` }, title), lead ? h('p', { class: 'lead' }, lead) : null),
        children)
}

/** A table with a header row; columns whose name begins with `#` hold numbers. */
export function table(caption: string, columns: string[], rows: Child[][], extra: Record<string, Attribute> = {}): HTMLElement {
    const numeric = columns.map((name) => name.startsWith('#'))
    const cell = (child: Child, at: number): HTMLElement =>
        at === 0 ? h('th', { scope: 'row' }, child) : h('td', { class: numeric[at] ? 'number' : null }, child)
    return h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': caption },
        h('table', extra,
            h('caption', { class: 'unseen' }, caption),
            h('thead', {}, h('tr', {}, columns.map((name, at) =>
                h('th', { scope: 'col', class: numeric[at] ? 'number' : null }, name.replace(/^#/, ''))))),
            h('tbody', {}, rows.map((row) => h('tr', {}, row.map(cell))))))
}
