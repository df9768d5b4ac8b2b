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
    const body = all.length
        ? h('ol', { class: 'findings' }, all.map((finding) => card(finding, finding.network ? model.colour(finding.network) : undefined)))
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
