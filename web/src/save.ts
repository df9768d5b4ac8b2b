// Takes figures and their data out of the page: as SVG, as PNG, as CSV.
//
// Model:   a figure that leaves the page takes its colours and fonts with it, as they are now, and has a ground. PNG has two
//          pixels for each of the page's. Data are the records that were drawn, each field a column: figures in the unit of
//          their name, none rounded for reading.
// Source:  RFC 4180 for CSV. Deviations: none.
// Checked: `a figure is saved as SVG, PNG and CSV`, `CSV holds every field of every row shown`.
import { h, node } from './dom'

/** A record whose fields are columns. */
export type Held = Record<string, unknown>

/** Text of a field: what was set by name as `a=1 b=2`, a verdict as its status. */
function text(content: unknown): string {
    if (content === null || content === undefined) return ''
    if (typeof content !== 'object') return String(content)
    const status = (content as { status?: unknown }).status
    if (typeof status === 'string') return status
    return Object.entries(content).map(([name, value]) => `${name}=${String(value)}`).join(' ')
}

/** Records as CSV: the columns are all fields that any of them has, in the order of their first appearance. */
export function csv(records: readonly object[]): string {
    const names = [...new Set(records.flatMap((record) => Object.keys(record)))]
    if (!names.length) return ''
    const field = (content: unknown): string => {
        const plain = text(content)
        return /[",\r\n]/.test(plain) ? `"${plain.replace(/"/g, '""')}"` : plain
    }
    const lines = records.map((record) => names.map((name) => field((record as Held)[name])).join(','))
    return [names.join(','), ...lines].join('\r\n') + '\r\n'
}

/** Hands a file to the reader. */
export function save(name: string, content: Blob): void {
    const link = h('a', { href: URL.createObjectURL(content), download: name })
    link.click()
    setTimeout(() => URL.revokeObjectURL(link.href), 1000)
}

/** What decides how a mark looks. */
const LOOKS = ['fill', 'fill-opacity', 'stroke', 'stroke-opacity', 'stroke-width', 'stroke-dasharray', 'stroke-linecap', 'opacity', 'font-family', 'font-size', 'font-weight', 'text-anchor', 'dominant-baseline', 'color']

/** A drawing as a file of its own, with its title. */
export function svgText(drawn: SVGSVGElement, title: string): string {
    const copy = drawn.cloneNode(true) as SVGSVGElement
    const [own, copied] = [[drawn, ...drawn.querySelectorAll('*')], [copy, ...copy.querySelectorAll('*')]]
    own.forEach((element, at) => {
        const looks = getComputedStyle(element)
        const other = copied[at] as SVGElement
        // A style sheet within the drawing is of the page.
        if (element.tagName === 'style') return other.remove()
        for (const name of LOOKS) other.setAttribute(name, looks.getPropertyValue(name))
        for (const name of ['class', 'style', 'aria-hidden', 'data-series', 'data-part']) other.removeAttribute(name)
    })
    const box = drawn.viewBox.baseVal
    const fill = getComputedStyle(document.documentElement).getPropertyValue('--surface').trim()
    const ground = node('rect', { x: box.x, y: box.y, width: box.width, height: box.height, fill })
    copy.prepend(node('title', {}, title), ground)
    copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg')
    return new XMLSerializer().serializeToString(copy)
}

/** The same as pixels; rejected where the browser cannot draw it. */
export async function png(drawn: SVGSVGElement, title: string): Promise<Blob> {
    const picture = new Image()
    picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svgText(drawn, title))}`
    await picture.decode()
    const canvas = document.createElement('canvas')
    const box = drawn.viewBox.baseVal
    canvas.width = Math.round(2 * box.width)
    canvas.height = Math.round(2 * box.height)
    canvas.getContext('2d')?.drawImage(picture, 0, 0, canvas.width, canvas.height)
    return new Promise((resolve, reject) => canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error('the browser made no picture'))), 'image/png'))
}

/** A file's name from a title. */
export const fileName = (title: string): string => `sonde-${title.toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '').slice(0, 60)}`

/** A button that copies a text. */
export function copyButton(label: string, text: () => string): HTMLElement {
    const button = h('button', { type: 'button', class: 'button', onclick: () => {
        const done = (said: string): void => {
            button.textContent = said
            setTimeout(() => (button.textContent = label), 1600)
        }
        copy(text()).then(() => done('Copied'), () => done('Could not copy'))
    } }, label)
    return button
}

// A page opened as a file may lack the clipboard's interface; a selected text area always works.
async function copy(words: string): Promise<void> {
    try {
        await navigator.clipboard.writeText(words)
    } catch {
        const area = h('textarea', { class: 'unseen' })
        area.value = words
        document.body.append(area)
        area.select()
        const copied = document.execCommand('copy')
        area.remove()
        if (!copied) throw new Error('the browser refused')
    }
}
