// A figure: a plot that follows the width of its place, is drawn anew when the selection changes, and tells the values of
// its points on hover, on touch and by the arrow keys.
//
// Model:   the point nearest to the pointer within REACH pixels is told. Arrow keys left and right walk along a series,
//          up and down change the series.
// Checked: `hover shows a value`, `arrow keys read a figure`, `a figure is saved as SVG, PNG and CSV`.
import { h, node, type Child } from './dom'
import { csv, fileName, png, save, svgText, type Held } from './save'
import type { Tooltip } from './tooltip'

const REACH = 36

/** A point that can be told. */
export interface Point {
    /** In the figure's own pixels. */
    x: number
    y: number
    /** Points of one line share it. */
    line: string
    colour: string
    /** What the tooltip says. */
    tell: () => { title: Child; rows: [string, Child][]; note?: Child }
    /** The record that it stands for, a line of the figure's CSV. */
    data: object
}

export interface Drawing {
    node: SVGSVGElement
    points: Point[]
}

export interface FigureOptions {
    /** What is drawn, for those who cannot see it. */
    label: string
    /** Draws for a width in pixels; null when nothing is selected or nothing was measured. */
    draw: (width: number) => Drawing | null
    /** What stands there when nothing is drawn. */
    empty?: string
}

export class Figure {
    readonly element: HTMLElement
    private readonly place: HTMLElement
    private readonly spoken = h('p', { class: 'unseen', 'aria-live': 'polite' })
    private readonly tools: HTMLElement
    private drawing: Drawing | null = null
    private mark: SVGCircleElement | null = null
    private at = -1
    private width = 0

    constructor(private readonly options: FigureOptions, private readonly tooltip: Tooltip) {
        this.place = h('div', {
            class: 'plot', tabindex: 0, role: 'group', 'aria-roledescription': 'figure',
            'aria-label': `${options.label} Arrow keys read its values.`,
            onpointermove: (event) => this.onPointer(event as PointerEvent),
            onpointerdown: (event) => this.onPointer(event as PointerEvent),
            onpointerleave: () => this.leave(),
            onblur: () => this.leave(),
            onkeydown: (event) => this.onKey(event as KeyboardEvent),
        })
        this.tools = this.saving()
        this.element = h('div', { class: 'figure' }, this.place, this.spoken, this.tools)
        new ResizeObserver(() => {
            const width = Math.floor(this.place.clientWidth)
            if (width > 0 && width !== this.width) this.draw()
        }).observe(this.place)
    }

    /** Buttons that save what is drawn. */
    private saving(): HTMLElement {
        const title = this.options.label.replace(/\.$/, '')
        const button = (kind: string, make: (drawing: Drawing) => Blob | Promise<Blob>): HTMLElement => {
            const pressed = async (): Promise<void> => {
                if (this.drawing) save(`${fileName(title)}.${kind.toLowerCase()}`, await make(this.drawing))
            }
            return h('button', { type: 'button', 'aria-label': `Save as ${kind}: ${title}`, onclick: () => void pressed() }, kind)
        }
        return h('div', { class: 'saving no-print', hidden: true }, 'Save ',
            button('SVG', ({ node }) => new Blob([svgText(node, title)], { type: 'image/svg+xml' })),
            button('PNG', ({ node }) => png(node, title)),
            button('CSV', ({ points }) => new Blob([csv([...new Set(points.map((point) => point.data))] as Held[])], { type: 'text/csv' })))
    }

    /** Draws anew. */
    draw(): void {
        this.leave()
        this.width = Math.floor(this.place.clientWidth)
        if (this.width === 0) return
        this.drawing = this.options.draw(this.width)
        this.tools.hidden = this.drawing === null
        if (!this.drawing) {
            this.place.replaceChildren(h('p', { class: 'nothing' }, this.options.empty ?? 'Nothing is selected.'))
            return
        }
        this.drawing.node.setAttribute('aria-hidden', 'true')
        this.place.replaceChildren(this.drawing.node)
    }

    private onPointer(event: PointerEvent): void {
        if (!this.drawing) return
        const box = this.drawing.node.getBoundingClientRect()
        const scale = box.width / (Number(this.drawing.node.getAttribute('width')) || box.width)
        const x = (event.clientX - box.left) / scale
        const y = (event.clientY - box.top) / scale
        let found = -1
        let nearest = REACH
        for (const [index, point] of this.drawing.points.entries()) {
            const distance = Math.hypot(point.x - x, point.y - y)
            if (distance < nearest) [found, nearest] = [index, distance]
        }
        if (found < 0) this.leave()
        else this.tell(found, false)
    }

    private onKey(event: KeyboardEvent): void {
        const points = this.drawing?.points ?? []
        if (!points.length || !event.key.startsWith('Arrow')) return
        event.preventDefault()
        const now = points[this.at]
        if (!now) return this.tell(0, true)
        const lines = [...new Set(points.map((point) => point.line))]
        const line = lines.indexOf(now.line)
        const along = points.map((point, index) => ({ point, index })).filter(({ point }) => point.line === now.line)
        const place = along.findIndex(({ index }) => index === this.at)
        if (event.key === 'ArrowRight' || event.key === 'ArrowLeft') {
            const next = along[(place + (event.key === 'ArrowRight' ? 1 : along.length - 1)) % along.length]
            return this.tell(next?.index ?? 0, true)
        }
        const other = lines[(line + (event.key === 'ArrowDown' ? 1 : lines.length - 1)) % lines.length]
        // The point of the other line that is nearest in x.
        let best = 0
        for (const [index, point] of points.entries()) {
            const held = points[best]
            if (point.line === other && (held?.line !== other || Math.abs(point.x - now.x) < Math.abs(held.x - now.x))) best = index
        }
        return this.tell(best, true)
    }

    private tell(index: number, aloud: boolean): void {
        const point = this.drawing?.points[index]
        if (!this.drawing || !point) return
        if (this.at !== index || this.mark === null) {
            this.at = index
            this.mark?.remove()
            this.mark = node('circle', { cx: point.x, cy: point.y, r: 7, fill: 'none', stroke: point.colour, 'stroke-width': 2, class: 'told' })
            this.drawing.node.appendChild(this.mark)
        }
        const { title, rows, note } = point.tell()
        const list = h('dl', {}, rows.map(([name, value]) => [h('dt', {}, name), h('dd', {}, value)]))
        const box = this.drawing.node.getBoundingClientRect()
        const scale = box.width / (Number(this.drawing.node.getAttribute('width')) || box.width)
        const head = h('p', { class: 'tip-title' }, h('i', { class: 'swatch', '--colour': point.colour }), title)
        this.tooltip.show([head, list, note ? h('p', { class: 'tip-note' }, note) : null], box.left + point.x * scale, box.top + point.y * scale)
        if (aloud) {
            this.spoken.replaceChildren(head.textContent ?? '', ': ', rows.map(([name, value]) => `${name} ${h('i', {}, value).textContent}`).join(', '))
        }
    }

    private leave(): void {
        if (this.at < 0) return
        this.at = -1
        this.mark?.remove()
        this.mark = null
        this.tooltip.hide()
    }
}
