// Which series and phases are shown. One selection serves every figure, so that a series switched off is off everywhere.
//
// Model:   at first all series are shown, and what is cold only where nothing is warm: a first message takes so long that it sets the
//          scale of all others. A link holds what differs from that: `hide` or `only` with places in the list of series, `cold`.
//          A link may also ask by name: `net` and `path` show what they name alone.
// Checked: `every legend button switches its series off and on again`, `a link gives the same page`.
import type { Series } from './model'
import type { Phase, Quantity } from './view'

export class Selection {
    private readonly hidden = new Set<string>()
    private readonly hiddenPhases = new Set<Phase>()
    private readonly listeners: (() => void)[] = []

    constructor(readonly all: Series[], private readonly hidesCold: boolean) {
        if (hidesCold) this.hiddenPhases.add('cold')
    }

    shows(series: Series): boolean {
        return !this.hidden.has(series.id)
    }

    /** A start-up is cold by nature, and shown whatever is chosen. */
    showsPhase(phase: Phase | null, quantity?: Quantity): boolean {
        return phase === null || quantity === 'startup_ns' || !this.hiddenPhases.has(phase)
    }

    get visible(): Series[] {
        return this.all.filter((series) => this.shows(series))
    }

    /** Whether all, some or none of these are shown, as `aria-pressed` says it. */
    pressed(some: Series[]): 'true' | 'mixed' | 'false' {
        const on = some.filter((series) => this.shows(series)).length
        return on === 0 ? 'false' : on === some.length ? 'true' : 'mixed'
    }

    /** Switches these off when all of them are on, else on. */
    toggle(some: Series[]): void {
        const off = this.pressed(some) === 'true'
        for (const series of some) {
            if (off) this.hidden.add(series.id)
            else this.hidden.delete(series.id)
        }
        this.tell()
    }

    togglePhase(phase: Phase): void {
        if (!this.hiddenPhases.delete(phase)) this.hiddenPhases.add(phase)
        this.tell()
    }

    /** Shows these and nothing else. */
    only(some: Series[]): void {
        this.hidden.clear()
        for (const series of this.all) if (!some.includes(series)) this.hidden.add(series.id)
        this.tell()
    }

    everything(): void {
        this.hidden.clear()
        this.hiddenPhases.clear()
        this.tell()
    }

    /** What of a link's state says what is shown. */
    state(): [string, string][] {
        const [hidden, visible] = [this.all.filter((series) => !this.shows(series)), this.visible]
        const places = (some: Series[]): string => some.map((series) => series.index).join('.')
        const state: [string, string][] = []
        if (hidden.length) state.push(hidden.length <= visible.length ? ['hide', places(hidden)] : ['only', places(visible)])
        if (this.showsPhase('cold') === this.hidesCold) state.push(['cold', this.showsPhase('cold') ? 'on' : 'off'])
        if (!this.showsPhase('warm')) state.push(['warm', 'off'])
        return state
    }

    /** Shows what a link says. */
    restore(state: URLSearchParams): void {
        const listed = (name: string): Set<number> | null => {
            const text = state.get(name)
            return text === null ? null : new Set(text.split('.').filter(Boolean).map(Number))
        }
        const [hide, only, net, path] = [listed('hide'), listed('only'), state.get('net'), state.get('path')]
        const isShown = (series: Series): boolean =>
            !hide?.has(series.index) && (only?.has(series.index) ?? true) && (net === null || series.network === net) && (path === null || series.path === path)
        this.hidden.clear()
        // What a link names and this run has not shows everything.
        if (this.all.some(isShown)) for (const series of this.all) if (!isShown(series)) this.hidden.add(series.id)
        this.hiddenPhases.clear()
        const cold = state.get('cold')
        if (cold === null ? this.hidesCold : cold === 'off') this.hiddenPhases.add('cold')
        if (state.get('warm') === 'off') this.hiddenPhases.add('warm')
        this.tell()
    }

    /** Calls back after every change. */
    onChange(listener: () => void): void {
        this.listeners.push(listener)
    }

    private tell(): void {
        for (const listener of this.listeners) listener()
    }
}
