// Under which conditions it was measured: warnings, hosts, settings, networks as resolved, the plan, what happened.
import type { Context } from '../context'
import { h, none, section, shown, table, type Child } from '../dom'
import { distinct } from '../model'
import { duration, memory, moment, rate, size, time } from '../units'
import type { HostRecord, SeenRow, View } from '../view'

/** The section. */
export function conditions({ model }: Context): HTMLElement {
    const { view } = model
    return section('conditions', 'Conditions', 'What must be the same for these figures to come again.',
        warnings(view),
        h('div', { class: 'card' }, h('dl', { class: 'conditions' },
            [...view.conditions, ['Version', view.run.version], ['Seed', String(view.run.seed)], ['Run', view.run.id]].map(([name, text]) => h('div', {}, h('dt', {}, name), h('dd', {}, text))))),
        view.hosts.length ? h('div', { class: 'card flush' }, h('h3', {}, 'Hosts'), hosts(view.hosts)) : null,
        settings(view.hosts),
        h('div', { class: 'card flush' }, h('h3', {}, 'Networks as resolved'), networks(view)),
        seen(view.seen),
        events(view),
        view.run.plan ? h('details', { class: 'card' }, h('summary', {}, 'The plan, as TOML'), h('pre', { tabindex: 0 }, view.run.plan)) : null)
}

function warnings(view: View): HTMLElement | null {
    if (!view.warnings.length) return null
    return h('div', { class: 'card warnings', role: 'note' }, h('h3', {}, `Check before trusting the figures (${view.warnings.length})`), h('ul', {}, view.warnings.map((warning) => h('li', {}, warning))))
}

function hosts(all: HostRecord[]): HTMLElement {
    const silent = 'the host does not report it'
    return table('Hosts', ['Host', 'Address', 'Kernel', 'CPU', '#CPUs', '#memory', 'Clock', '#to read it', '#offset to the first', 'Interface', '#MTU'], all.map((host) => [
        host.name, host.address, host.facts.kernel, host.facts.cpu ?? none(silent), host.facts.cpus, shown(host.facts.memory_bytes, memory, silent),
        host.facts.clock_source ?? none(silent), shown(host.facts.clock_read_ns, time, silent),
        host.clock ? `${time(host.clock.offset_ns)} ± ${time(host.clock.bound_ns)}` : none('the first host, or one clock serves all'),
        host.facts.interface ?? none(silent), shown(host.facts.mtu_bytes, size, silent),
    ]))
}

const OWN = ['ipv4.udp_mem', 'sockets.established', 'interrupts.cpus', 'copy_bps']

function settings(hosts: HostRecord[]): HTMLElement | null {
    // A loopback beside hosts is set otherwise by nature.
    const apart = hosts.filter((host) => host.facts.interface !== 'lo')
    const all = apart.length ? apart : hosts
    const names = distinct(all.flatMap((host) => Object.keys(host.facts.settings))).sort()
    if (!names.length) return null
    const values = (name: string): string[] => all.map((host) => host.facts.settings[name] ?? '')
    // What is measured, and what memory and the day decide, is rightly not the same.
    const unlike = names.filter((name) => distinct(values(name)).length > 1 && !OWN.includes(name))
    const rows = [...unlike, ...names.filter((name) => !unlike.includes(name))].map((name): Child[] => {
        const own = values(name)
        const common = [...own].sort((a, b) => own.filter((one) => one === b).length - own.filter((one) => one === a).length)[0]
        const odd = all.filter((_, at) => own[at] !== common)
        return [h('code', {}, name), h('code', {}, common ?? ''), odd.length ? h('span', { class: unlike.includes(name) ? 'alarm' : null }, odd.map((host) => `${host.name}: ${host.facts.settings[name] ?? 'absent'}`).join(', ')) : none('the same on all hosts')]
    })
    return h('details', { class: 'card flush', open: unlike.length > 0 }, h('summary', {}, `Settings of the hosts’ TCP${unlike.length ? `: ${unlike.length} not the same everywhere` : ', the same everywhere'}`), table('Settings', ['Setting', 'Value', 'Other than that'], rows))
}

function networks(view: View): HTMLElement {
    return table('Networks as resolved', ['Network', 'Technology', 'Topology', '#MTU', '#line rate', '#TCP at most', '#TCP expected', '#1 B one way', 'Attached', 'Held back by', 'Description'], view.networks.map(({ row, attachment, backpressure, spec }) => [
        row.name, row.technology, row.topology ?? none('real'), size(row.mtu_bytes), shown(row.line_bps, rate, 'it has no rate'), shown(row.tcp_max_bps, rate, 'it has no rate'), shown(row.tcp_expected_bps, rate, 'not worked out'),
        shown(row.one_way_1b_ns, time, 'no model'), attachment ?? none('not emulated'), backpressure ?? none('not emulated'),
        spec ? h('details', {}, h('summary', {}, 'TOML'), h('pre', { tabindex: 0 }, spec)) : none('a real network'),
    ]))
}

/** What the launches saw beside their samples: facts that are the same of all first, then those of each line. */
function seen(all: SeenRow[]): HTMLElement | null {
    if (!all.length) return null
    const value = (row: SeenRow, name: string): string | undefined => row.facts.find(([fact]) => fact === name)?.[1]
    const names = distinct(all.flatMap((row) => row.facts.map(([name]) => name))).sort()
    const common = names.filter((name) => all.length > 1 && all.every((row) => value(row, name) === value(all[0]!, name)))
    const facts = (rows: [string, string][]): HTMLElement => table('Facts', ['Fact', 'What it was'], rows.map(([name, text]) => [h('code', {}, name), text]))
    const titled = (row: SeenRow): string => [row.probe, row.network, row.path, row.method, row.wait, row.load && `load ${row.load}`, ...Object.entries(row.knobs).map(([name, text]) => `${name}=${text}`)].filter(Boolean).join(', ')
    return h('details', { class: 'card flush seen' }, h('summary', {}, `Evidence of the repetitions: ${names.length} facts by their paths in the record`),
        common.length ? [h('h3', {}, 'The same of all'), facts(common.map((name) => [name, value(all[0]!, name) ?? '']))] : null,
        all.map((row) => h('details', {}, h('summary', {}, `${titled(row)}: ${row.launches} ${row.launches === 1 ? 'repetition' : 'repetitions'}`), facts(row.facts.filter(([name]) => !common.includes(name))))))
}

function events(view: View): HTMLElement | null {
    if (!view.events.length) return null
    return h('div', { class: 'card flush' }, h('h3', {}, 'What happened meanwhile'), table('Events', ['When', '#into the run', 'What', 'In words'], view.events.map((event) => [
        moment(event.at_unix_ns), duration(Math.max(0, event.at_unix_ns - view.run.began_unix_ns)), event.kind, event.text,
    ])))
}
