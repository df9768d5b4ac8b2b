// A heat map: cells in rows and columns, shaded from the usual to the worst, with marks around rows, columns and cells.
//
// Model:   one hue, and what is worse is farther from the paper: darker in light colours and in print, brighter in dark ones. The
//          shades begin at the best and go to what is a half worse at least, so that noise stays pale; where the worst is ten
//          times the best they go by the logarithm. Up to CELLS_DRAWN cells on a side are drawn one by one, more as one picture.
// Checked: `a heat map shades what is worse`.
import { node } from './dom'
import type { Drawing, Point } from './figure'

export interface HeatOptions {
    width: number
    side: number
    values: (number | null)[]
    /** Whether a larger value is worse. */
    risesWorse: boolean
    /** Names of rows and columns; none where they would not be legible. */
    names: string[]
    format: (value: number) => string
    marks: { src: number; dst: number | null; both: boolean }[]
    tell: (src: number, dst: number, value: number | null) => ReturnType<Point['tell']>
    record: (src: number, dst: number, value: number | null) => object
}

const STOPS = 6
const CELLS_DRAWN = 64
const SIDE_PX_MAX = 600
const CELL_PX_MAX = 72
const LABEL_PX = 11
const SPAN_MIN = 1.5

/** The shades as they are now: they change with the theme and in print. */
function stops(): number[][] {
    const style = getComputedStyle(document.documentElement)
    return Array.from({ length: STOPS }, (_, at) => {
        const hex = style.getPropertyValue(`--heat-${at}`).trim().replace('#', '')
        return [0, 2, 4].map((from) => Number.parseInt(hex.slice(from, from + 2), 16) || 0)
    })
}

function shade(all: number[][], part: number): [number, number, number] {
    const at = Math.min(1, Math.max(0, part)) * (STOPS - 1)
    const low = Math.min(STOPS - 2, Math.floor(at))
    return [0, 1, 2].map((channel) => {
        const [from, to] = [all[low]?.[channel] ?? 0, all[low + 1]?.[channel] ?? 0]
        return Math.round(from + (to - from) * (at - low))
    }) as [number, number, number]
}

/** Where the shades begin and end, whether the end was measured, and the part of the way of a value. */
export function scale(values: (number | null)[], risesWorse: boolean): { best: number; worst: number; isMeasured: boolean; middle: number; part: (value: number) => number } {
    const sorted = values.filter((value): value is number => value !== null && value > 0).sort((a, b) => a - b)
    const middle = sorted[Math.floor((sorted.length - 1) / 2)] ?? 1
    const [least, most] = [sorted[0] ?? middle, sorted[sorted.length - 1] ?? middle]
    const low = risesWorse ? least : Math.min(least, most / SPAN_MIN)
    const high = risesWorse ? Math.max(most, least * SPAN_MIN) : most
    const on = high / low >= 10 ? Math.log : Number
    const part = (value: number): number => {
        const along = (on(Math.max(value, low)) - on(low)) / (on(high) - on(low))
        return risesWorse ? along : 1 - along
    }
    return { best: risesWorse ? low : high, worst: risesWorse ? high : low, isMeasured: risesWorse ? high === most : low === least, middle, part }
}

/** Draws it. */
export function drawHeat(options: HeatOptions): Drawing {
    const { width, side, values, names } = options
    const longest = Math.max(0, ...names.map((name) => name.length))
    const room = names.length ? Math.min(width * 0.3, Math.min(longest, 14) * 6.4 + 10) : 16
    const whole = Math.min(SIDE_PX_MAX, CELL_PX_MAX * side, width - room - 4)
    const cell = whole / side
    // Names that fit above their column stand upright.
    const flat = names.length > 0 && longest * 6.4 < cell
    const [left, top] = [room, names.length === 0 ? 4 : flat ? 20 : room]
    const svg = node('svg', { width: left + whole + 4, height: top + whole + 52, viewBox: `0 0 ${left + whole + 4} ${top + whole + 52}`, class: 'heat' })
    const ruler = scale(values, options.risesWorse)
    const shades = stops()
    const colour = (value: number): string => `rgb(${shade(shades, ruler.part(value)).join(' ')})`
    svg.append(node('rect', { x: left, y: top, width: whole, height: whole, class: 'heat-ground' }))
    if (side <= CELLS_DRAWN) svg.append(cells(options, left, top, cell, colour))
    else svg.append(picture(options, left, top, whole, (value) => shade(shades, ruler.part(value))))
    svg.append(...labels(names, left, top, cell, flat))
    svg.append(...options.marks.flatMap((mark) => outlines(mark, left, top, cell, whole)))
    svg.append(legend(left, top + whole + 16, Math.min(whole, 320), shades, ruler, options))
    const points = values.map((value, at): Point => {
        const [src, dst] = [Math.floor(at / side), at % side]
        return { x: left + (dst + 0.5) * cell, y: top + (src + 0.5) * cell, line: `row ${src}`, colour: value === null ? 'var(--faint)' : colour(value), tell: () => options.tell(src, dst, value), data: options.record(src, dst, value) }
    })
    return { node: svg, points: points.filter((_, at) => side > CELLS_DRAWN ? values[at] !== null : Math.floor(at / side) !== at % side || values[at] !== null) }
}

function cells({ side, values }: HeatOptions, left: number, top: number, cell: number, colour: (value: number) => string): SVGElement {
    const group = node('g', { class: 'heat-cells' })
    const gap = cell > 8 ? 1 : 0
    for (const [at, value] of values.entries()) {
        const [src, dst] = [Math.floor(at / side), at % side]
        if (value === null && src === dst) continue
        group.append(node('rect', {
            x: left + dst * cell, y: top + src * cell, width: cell - gap, height: cell - gap, 'data-pair': `${src} ${dst}`,
            ...(value === null ? { class: 'heat-none' } : { fill: colour(value) }),
        }))
    }
    return group
}

/** One picture, a pixel a cell: tens of thousands of elements would make the page slow. */
function picture({ side, values }: HeatOptions, left: number, top: number, whole: number, colour: (value: number) => [number, number, number]): SVGElement {
    const canvas = document.createElement('canvas')
    canvas.width = canvas.height = side
    const pen = canvas.getContext('2d')
    const pixels = pen?.createImageData(side, side)
    if (pen && pixels) {
        for (const [at, value] of values.entries()) if (value !== null) pixels.data.set([...colour(value), 255], at * 4)
        pen.putImageData(pixels, 0, 0)
    }
    return node('image', { x: left, y: top, width: whole, height: whole, href: canvas.toDataURL(), preserveAspectRatio: 'none', class: 'heat-picture' })
}

/** Names beside rows and above columns; every second, third … one where there is no room for all. */
function labels(names: string[], left: number, top: number, cell: number, flat: boolean): SVGElement[] {
    const every = Math.max(1, Math.ceil(LABEL_PX / cell))
    const short = (name: string): string => (name.length > 14 ? `${name.slice(0, 13)}…` : name)
    return names.flatMap((name, at) => (at % every ? [] : [
        node('text', { x: left - 5, y: top + (at + 0.5) * cell, class: 'heat-name', 'text-anchor': 'end', 'dominant-baseline': 'central' }, short(name)),
        flat ? node('text', { x: left + (at + 0.5) * cell, y: top - 6, class: 'heat-name', 'text-anchor': 'middle' }, short(name))
            : node('text', { x: 0, y: 0, class: 'heat-name', 'dominant-baseline': 'central', transform: `translate(${left + (at + 0.5) * cell} ${top - 5}) rotate(-90)` }, short(name)),
    ]))
}

/** A host's row and column, a link's two cells, a direction's one. */
function outlines({ src, dst, both }: HeatOptions['marks'][number], left: number, top: number, cell: number, whole: number): SVGElement[] {
    const frame = (x: number, y: number, width: number, height: number): SVGElement => node('rect', { x: left + x, y: top + y, width, height, class: 'heat-mark' })
    if (dst === null) return [frame(0, src * cell, whole, cell), frame(src * cell, 0, cell, whole)]
    const one = frame(dst * cell, src * cell, cell, cell)
    return both ? [one, frame(src * cell, dst * cell, cell, cell)] : [one]
}

function legend(x: number, y: number, width: number, shades: number[][], ruler: ReturnType<typeof scale>, { format }: HeatOptions): SVGElement {
    const group = node('g', { class: 'heat-legend' })
    const steps = 40
    for (let at = 0; at < steps; at += 1) {
        group.append(node('rect', { x: x + (width * at) / steps, y, width: width / steps + 0.6, height: 9, fill: `rgb(${shade(shades, (at + 0.5) / steps).join(' ')})` }))
    }
    const middle = ruler.part(ruler.middle)
    const text = (part: number, anchor: string, words: string): SVGElement => node('text', { x: x + width * part, y: y + 24, class: 'heat-tick', 'text-anchor': anchor }, words)
    group.append(text(0, 'start', `best ${format(ruler.best)}`), text(1, 'end', `${ruler.isMeasured ? 'worst ' : ''}${format(ruler.worst)}`))
    group.append(node('rect', { x: x + width * middle - 0.75, y: y - 3, width: 1.5, height: 15, class: 'heat-middle' }))
    return group
}
