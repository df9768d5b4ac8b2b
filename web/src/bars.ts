// A bar of pieces that add up: a name, the pieces on a scale that bars of one panel share, and the whole in words.
import { h } from './dom'

export interface Piece {
    name: string
    value: number
    colour: string
    /** What is said of it. */
    tip: string
}

/** The three cells of a bar; `most` is the scale's end. Pieces of nothing are not drawn. */
export function bar(label: string, pieces: Piece[], most: number, whole: string, words = pieces.map(({ tip }) => tip).join(', ')): Node[] {
    return [
        h('span', { class: 'bars-name' }, label),
        h('div', { class: 'track', role: 'img', 'aria-label': `${label}: ${words}` },
            pieces.filter(({ value }) => value > 0).map(({ colour, value, tip }) => h('i', { class: 'segment', 'width-share': `${(100 * value) / most}%`, '--colour': colour, 'data-tip': tip }))),
        h('span', { class: 'bars-value strong' }, whole),
    ]
}

/** What the colours mean. */
export const colourKey = (names: [string, string][]): HTMLElement =>
    h('ul', { class: 'line-key plain' }, names.map(([name, colour]) => h('li', {}, h('i', { class: 'swatch', '--colour': colour }), name)))
