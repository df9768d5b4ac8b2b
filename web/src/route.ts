// Which view is shown and what is chosen in it, as the address has them after `#`: `#latency?net=wire`. So a link gives the same page.
//
// Checked: `a link gives the same page`, `each view opens by its link`.

export class Route {
    /** The view, or a section of one. */
    view = ''
    state = new URLSearchParams()
    private readonly listeners: (() => void)[] = []

    constructor() {
        this.read()
        window.addEventListener('hashchange', () => {
            this.read()
            for (const listener of this.listeners) listener()
        })
    }

    /** Calls back when a link was followed. */
    onFollowed(listener: () => void): void {
        this.listeners.push(listener)
    }

    /** Keeps these in the address: null takes one out. The view stays. */
    keep(entries: [string, string | null][]): void {
        for (const [name, value] of entries) {
            if (value === null || value === '') this.state.delete(name)
            else this.state.set(name, value)
        }
        try {
            window.history.replaceState(null, '', link(this.view, [...this.state]))
        } catch {
            // A browser may refuse it to a file: the page works without.
        }
    }

    private read(): void {
        const [view = '', state = ''] = window.location.hash.slice(1).split('?')
        this.view = view
        this.state = new URLSearchParams(state)
    }
}

/** The link to a view. */
export function link(view: string, state: [string, string][] = []): string {
    const told = new URLSearchParams(state).toString()
    return `#${view}${told ? `?${told}` : ''}`
}
