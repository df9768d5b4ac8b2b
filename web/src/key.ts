// What the kinds of lines in a figure mean.
import { h, node } from './dom'

export type KeyEntry = 'warm' | 'cold' | 'bound' | 'band' | 'message' | 'stream' | 'ceiling' | 'line' | 'half'
const WORDS: Record<KeyEntry, string> = {
    warm: 'warm: median of all samples',
    cold: 'cold: the first message',
    bound: 'what the model allows',
    band: '95 % interval over repetitions',
    message: 'single messages',
    stream: 'stream',
    ceiling: 'ceiling of a stream',
    line: 'line rate',
    half: 'half-performance size',
}

function sample(entry: KeyEntry): SVGSVGElement {
    const svg = node('svg', { viewBox: '0 0 30 14', width: 30, height: 14, 'aria-hidden': 'true' })
    const add = (tag: 'path' | 'rect' | 'circle', attributes: Record<string, string | number>): void => {
        svg.append(node(tag, { stroke: 'currentColor', fill: 'none', 'stroke-width': 1.6, ...attributes }))
    }
    const line = (dash: string, cap = 'butt'): void => add('path', { d: 'M1,7H29', 'stroke-dasharray': dash, 'stroke-linecap': cap })
    if (entry === 'band') add('rect', { x: 1, y: 2, width: 28, height: 10, fill: 'currentColor', 'fill-opacity': 0.2, stroke: 'none' })
    else if (entry === 'stream') add('circle', { cx: 15, cy: 7, r: 5.4, 'stroke-width': 2.4 })
    else if (entry === 'half') {
        add('path', { d: 'M15,14V7' })
        add('circle', { cx: 15, cy: 5, r: 2.6 })
    }
    else line(entry === 'cold' ? '5 4' : entry === 'bound' ? '1 4' : entry === 'ceiling' ? '9 3' : entry === 'line' ? '2 2' : '', entry === 'bound' ? 'round' : 'butt')
    if (entry === 'warm' || entry === 'message') add('circle', { cx: 15, cy: 7, r: 3.2, fill: 'currentColor' })
    if (entry === 'cold') add('circle', { cx: 15, cy: 7, r: 3.2, fill: 'var(--surface)' })
    return svg
}

/** The key below a figure. */
export function key(entries: KeyEntry[]): HTMLElement {
    return h('ul', { class: 'line-key', 'aria-label': 'Kinds of lines' }, entries.map((entry) => h('li', {}, sample(entry), WORDS[entry])))
}
