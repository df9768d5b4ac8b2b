// Which series and phases are shown. One selection serves every figure, so that a series switched off is off everywhere.
//
// Checked: `every legend button switches its series off and on again`.
import type { Series } from './model'
import type { Phase } from './view'

export class Selection {
    private readonly hidden = new Set<string>()
    private readonly hiddenPhases = new Set<Phase>()
    private readonly listeners: (() => void)[] = []
    readonly all: Series[]

    constructor(all: Series[]) {
        this.all = all
    }

    shows(series: Series): boolean {
        return !this.hidden.has(series.id)
    }

    showsPhase(phase: Phase | null): boolean {
        return phase === null || !this.hiddenPhases.has(phase)
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

    /** Calls back after every change. */
    onChange(listener: () => void): void {
        this.listeners.push(listener)
    }

    private tell(): void {
        for (const listener of this.listeners) listener()
    }
}
