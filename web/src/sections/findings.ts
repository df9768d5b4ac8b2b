// What a person can act on, the gravest first.
import type { Context } from '../context'
import { h, section } from '../dom'
import type { Finding, Severity } from '../view'

const ORDER: Severity[] = ['warning', 'advice', 'note']
const WORDS: Record<Severity, [string, string]> = {
    warning: ['Warning', '▲'],
    advice: ['Advice', '●'],
    note: ['Note', '○'],
}

/** The findings by severity. */
export function findings({ model }: Context): HTMLElement {
    const all = [...model.view.findings].sort((a, b) => ORDER.indexOf(a.severity) - ORDER.indexOf(b.severity))
    const cards = (some: Finding[]): HTMLElement => h('ol', { class: 'findings' },
        some.map((finding) => card(finding, finding.network ? model.colour(finding.network) : undefined)))
    const [act, know] = [all.filter((finding) => finding.severity !== 'note'), all.filter((finding) => finding.severity === 'note')]
    // Notes are many and ask for nothing: they are a click away, and open where there is nothing else.
    const notes = know.length
        ? h('details', { class: 'notes', open: act.length === 0 ? '' : undefined }, h('summary', {}, `${know.length} ${know.length === 1 ? 'note' : 'notes'}: worth knowing, nothing to do`), cards(know))
        : null
    // On paper there is no click.
    window.addEventListener('beforeprint', () => notes?.setAttribute('open', ''))
    const body = all.length
        ? h('div', {}, act.length ? cards(act) : null, notes)
        : h('p', { class: 'nothing' }, 'No rule found anything to say.')
    return section('findings', 'Findings', 'Each follows from the figures by a stated rule: its arithmetic is beneath it.', body)
}

function card(finding: Finding, colour: string | undefined): HTMLElement {
    const [word, icon] = WORDS[finding.severity] ?? WORDS.note
    return h('li', { class: `finding ${finding.severity}` },
        h('p', { class: 'finding-head' },
            h('span', { class: 'severity' }, h('span', { 'aria-hidden': 'true' }, icon), ` ${word}`),
            finding.network ? h('span', { class: 'finding-network' }, h('i', { class: 'swatch', '--colour': colour }), `${finding.network}${finding.path ? ` ${finding.path}` : ''}`) : null,
            h('span', { class: 'rule' }, finding.rule)),
        h('p', { class: 'sentence' }, finding.sentence),
        finding.arithmetic ? h('p', { class: 'arithmetic' }, finding.arithmetic) : null,
        finding.remedy ? h('p', { class: 'remedy' }, h('b', {}, 'What to do: '), finding.remedy) : null)
}
