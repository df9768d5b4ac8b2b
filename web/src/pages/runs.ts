// The list of a store's runs, newest first: each leads to its page, two that are chosen to their comparison, a name to its history.
//
// Model:   the two newest that have ended are chosen at first; of a third the one that was chosen first goes. The older is the baseline.
// Checked: `two runs are chosen from the list`, `runs are found by a word`.
import { h, none, table, type Child } from '../dom'
import { count, duration, moment } from '../units'
import type { ListedRun, RunList } from '../view'
import { frame, Drawn } from './frame'
import { compareLink, historyLink, runName } from './served'

/** So many are listed until more are asked for. */
const SHOWN = 30
const STATES = { open: 'not ended', complete: 'complete', partial: 'partial' } as const
const MEANINGS = {
    open: 'It is running, or it was killed.',
    complete: 'All repetitions were made.',
    partial: 'It ended before all repetitions were made; --resume makes the others.',
} as const

export function runs(page: HTMLElement, data: RunList): void {
    const all = data.runs
    const open = all.filter((run) => run.state === 'open').length
    const chosen = all.filter((run) => run.state !== 'open').slice(0, 2).map((run) => run.run)
    const place = h('div', {})
    const compare = h('a', { class: 'button compare-chosen' })
    const search = h('input', { type: 'search', class: 'find', placeholder: 'Name, command or id', 'aria-label': 'Find runs by name, command or id', oninput: () => list() })
    let shown = SHOWN
    const choose = (run: string, isOn: boolean): void => {
        const at = chosen.indexOf(run)
        if (at >= 0) chosen.splice(at, 1)
        if (isOn) chosen.push(run)
        if (chosen.length > 2) chosen.shift()
        update()
    }
    const update = (): void => {
        for (const box of place.querySelectorAll<HTMLInputElement>('input[type="checkbox"]')) box.checked = chosen.includes(box.value)
        // The list is the newest first.
        const [to, from] = all.filter((run) => chosen.includes(run.run))
        if (to && from) compare.setAttribute('href', compareLink(from.run, to.run))
        else compare.removeAttribute('href')
        compare.setAttribute('aria-disabled', String(!from))
        const isNamed = from?.name !== to?.name
        compare.textContent = from && to ? `Compare ${called(from, isNamed)} with ${called(to, isNamed)}` : 'Choose two runs to compare'
    }
    const list = (): void => {
        const words = search.value.toLowerCase().split(/\s+/).filter(Boolean)
        const found = all.filter((run) => words.every((word) => `${run.run} ${run.name ?? ''} ${run.command} ${STATES[run.state]}`.toLowerCase().includes(word)))
        const more = found.length - shown
        place.replaceChildren(
            found.length ? h('div', { class: 'card flush' }, table('Runs', ['Run', 'Name', 'Began', '#took', 'State', 'Compare', 'Command'], found.slice(0, shown).map((run) => line(run, choose)))) : h('p', { class: 'nothing' }, 'No run has these words.'),
            more > 0 ? h('button', { type: 'button', class: 'button more no-print', onclick: () => {
                shown += 10 * SHOWN
                list()
            } }, `Show ${count(Math.min(more, 10 * SHOWN))} more`) : '')
        update()
    }
    list()
    const newest = all[0]
    frame(page, new Drawn(), {
        title: 'runs', eyebrow: 'Runs', here: '/',
        sentence: all.length === 0 ? 'There is no run in this store yet.' : `${count(all.length + data.older)} ${all.length === 1 ? 'run' : 'runs'}${open ? `, ${open} of them not ended` : ''}.`,
        facts: [['Store', data.store], ...(newest ? [['Newest', runName(newest.run)], ['Began', moment(newest.began_unix_ns)]] as [string, Child][] : [])],
        body: all.length === 0
            ? [h('p', { class: 'nothing' }, h('code', {}, 'sonde assess'), ' makes one.')]
            : [h('div', { class: 'controls' }, search, h('span', { class: 'spacer' }), compare), place, data.older ? h('p', { class: 'axis-note' }, `${count(data.older)} older runs are not in this list; sonde report list has them.`) : null],
        foot: 'sonde report serve: this machine alone can read these pages, and nothing is written.',
    })
}

/** What a run is called where there is little room. */
const called = (run: ListedRun, isNamed: boolean): string => (isNamed && run.name !== null ? run.name : run.run)

function line(run: ListedRun, choose: (run: string, isOn: boolean) => void): Child[] {
    return [
        runName(run.run),
        run.name === null ? none('it was measured without --name') : h('a', { href: historyLink(run.name), title: `The history of ${run.name}` }, run.name),
        moment(run.began_unix_ns),
        run.ended_unix_ns === null ? none('it has not ended') : duration(run.ended_unix_ns - run.began_unix_ns),
        h('span', { class: `state ${run.state}`, 'data-tip': MEANINGS[run.state] }, STATES[run.state]),
        h('input', { type: 'checkbox', value: run.run, 'aria-label': `Compare ${run.run}`, onchange: (event) => choose(run.run, (event.target as HTMLInputElement).checked) }),
        h('code', {}, run.command),
    ]
}
