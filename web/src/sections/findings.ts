// What a person can act on, the gravest first; by severity, network and rule, each with links to its figure and its rows.
//
// Model:   findings of one rule stand together: the first is open, the others a click away. At first notes are not shown where anything
//          else is: they ask for nothing. A link holds the choice as `severity`, `net` and `rule`.
// Checked: `findings are filtered, and lead to figures and rows`.
import type { Context } from '../context'
import { h, prose, section, type Child } from '../dom'
import { distinct } from '../model'
import { viewOfRule } from '../rules'
import type { Finding, Severity } from '../view'

const ORDER: Severity[] = ['warning', 'advice', 'note']
const WORDS: Record<Severity, [string, string, string]> = {
    warning: ['Warning', 'warnings', '▲'],
    advice: ['Advice', 'advice', '●'],
    note: ['Note', 'notes', '○'],
}

/** Findings by rule, the gravest first, else in their order; no group is empty. */
export function groupsByRule(findings: Finding[]): [Finding, ...Finding[]][] {
    const sorted = [...findings].sort((a, b) => ORDER.indexOf(a.severity) - ORDER.indexOf(b.severity))
    const groups = new Map<string, [Finding, ...Finding[]]>()
    for (const finding of sorted) {
        const name = `${finding.severity} ${finding.rule}`
        const group = groups.get(name)
        if (group) group.push(finding)
        else groups.set(name, [finding])
    }
    return [...groups.values()]
}

/** The section. */
export function findings(context: Context): HTMLElement {
    const { model, route } = context
    const all = model.view.findings
    if (!all.length) return section('findings', 'Findings', null, h('p', { class: 'nothing' }, 'No rule found anything to say.'))
    const present = ORDER.filter((severity) => all.some((finding) => finding.severity === severity))
    const usual = present.some((severity) => severity !== 'note') ? present.filter((severity) => severity !== 'note') : present
    let severities = new Set(usual)
    const menu = (label: string, name: string, values: string[]): HTMLSelectElement =>
        h('select', { 'aria-label': label, 'data-name': name, onchange: () => chosen() }, h('option', { value: '' }, label), values.map((value) => h('option', { value }, value)))
    const networks = menu('All networks', 'net', distinct(all.flatMap((finding) => finding.network ?? [])))
    const rules = menu('All rules', 'rule', distinct(all.map((finding) => finding.rule)).sort())
    const chips = present.map((severity) => h('button', { type: 'button', class: 'chip', 'data-severity': severity, onclick: () => {
        if (!severities.delete(severity)) severities.add(severity)
        chosen()
    } }, h('span', { 'aria-hidden': 'true' }, `${WORDS[severity][2]} `), `${all.filter((finding) => finding.severity === severity).length} ${WORDS[severity][1]}`))
    const total = h('p', { class: 'axis-note', 'aria-live': 'polite' })
    const place = h('div', {})
    // A link may name several rules; the menu has one.
    let wanted: string[] = []
    const fill = (): void => {
        chips.forEach((chip) => chip.setAttribute('aria-pressed', String(severities.has(chip.dataset.severity as Severity))))
        const kept = all.filter((finding) => severities.has(finding.severity) && (!networks.value || finding.network === networks.value) && (!wanted.length || wanted.includes(finding.rule)))
        total.textContent = `${kept.length} of ${all.length} findings`
        const groups = groupsByRule(kept)
        place.replaceChildren(groups.length
            ? h('ol', { class: 'findings' }, groups.map(([first, ...rest]) => h('li', {}, card(context, first), rest.length
                ? h('details', { class: 'alike' }, h('summary', {}, `${rest.length} more of this rule`), h('ol', { class: 'findings' }, rest.map((finding) => h('li', {}, card(context, finding))))) : null)))
            : h('p', { class: 'nothing' }, 'No finding is left by the filter.'))
    }
    const chosen = (): void => {
        wanted = rules.value ? [rules.value] : []
        const isUsual = severities.size === usual.length && usual.every((severity) => severities.has(severity))
        route.keep([['severity', isUsual ? null : [...severities].join('.')], ['net', networks.value], ['rule', rules.value]])
        fill()
    }
    const follow = (): void => {
        if (route.view !== 'findings') return
        const { state } = route
        wanted = (state.get('rule') ?? '').split('.').filter(Boolean)
        const said = (state.get('severity') ?? '').split('.').filter((one): one is Severity => present.includes(one as Severity))
        // What a link names by its rule is shown whatever it is.
        severities = new Set(said.length ? said : wanted.length ? present : usual)
        networks.value = state.get('net') ?? ''
        rules.value = wanted.length === 1 ? wanted[0] ?? '' : ''
        fill()
    }
    route.onFollowed(follow)
    fill()
    follow()
    // On paper there is no click.
    window.addEventListener('beforeprint', () => place.querySelectorAll('details').forEach((one) => one.setAttribute('open', '')))
    return section('findings', 'Findings', 'Each follows from the figures by a stated rule: its arithmetic is beneath it.',
        h('div', { class: 'controls' }, h('div', { class: 'chips', role: 'group', 'aria-label': 'Severity' }, chips), networks, rules), total, place)
}

function card(context: Context, finding: Finding): HTMLElement {
    const colour = context.model.colour(finding.network ?? '')
    const [word, , icon] = WORDS[finding.severity]
    const named = (of: [string, string | null][]): [string, string][] => of.filter((one): one is [string, string] => one[1] !== null)
    const links: Child[] = [
        h('a', { href: context.link(viewOfRule(finding.rule), named([['net', finding.network]])) }, 'Figure'),
        finding.network ? h('a', { href: context.link('rows', named([['network', finding.network], ['q', finding.path]])) }, 'Rows') : null,
    ]
    return h('div', { class: `finding ${finding.severity}` },
        h('p', { class: 'finding-head' },
            h('span', { class: 'severity' }, h('span', { 'aria-hidden': 'true' }, icon), ` ${word}`),
            finding.network ? h('span', { class: 'finding-network' }, h('i', { class: 'swatch', '--colour': colour }), `${finding.network}${finding.path ? ` ${finding.path}` : ''}`) : null,
            h('span', { class: 'finding-links' }, links), h('span', { class: 'rule' }, finding.rule)),
        h('p', { class: 'sentence' }, prose(finding.sentence)),
        finding.arithmetic ? h('p', { class: 'arithmetic' }, finding.arithmetic) : null,
        finding.remedy ? h('p', { class: 'remedy' }, h('b', {}, 'What to do: '), prose(finding.remedy)) : null)
}
