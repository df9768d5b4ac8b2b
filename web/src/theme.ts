// Light or dark: as the system says, until the reader says otherwise. Print is always light.
import { h } from './dom'

type Theme = 'light' | 'dark'
const KEY = 'sonde-theme'

/** The theme in force. */
export function theme(): Theme {
    const said = document.documentElement.dataset.theme
    if (window.matchMedia('print').matches) return 'light'
    if (said === 'light' || said === 'dark') return said
    return window.matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light'
}

// Storage may be refused, for files above all.
function remembered(): string | null {
    try {
        return window.localStorage.getItem(KEY)
    } catch {
        return null
    }
}

function remember(value: Theme): void {
    try {
        window.localStorage.setItem(KEY, value)
    } catch {
        // It holds until the page is closed.
    }
}

/** The button that changes it; `changed` is called after every change, the system's and the printer's too. */
export function themeButton(changed: () => void): HTMLElement {
    const stored = remembered()
    if (stored === 'light' || stored === 'dark') document.documentElement.dataset.theme = stored
    const button = h('button', { type: 'button', class: 'theme', onclick: () => {
        const next = theme() === 'dark' ? 'light' : 'dark'
        document.documentElement.dataset.theme = next
        remember(next)
        update()
    } })
    const update = (): void => {
        const next = theme() === 'dark' ? 'light' : 'dark'
        button.textContent = next === 'light' ? '☀' : '☾'
        button.setAttribute('aria-label', `Switch to ${next} colours`)
        button.title = `Switch to ${next} colours`
        changed()
    }
    for (const query of ['(prefers-color-scheme: dark)', 'print']) window.matchMedia(query).addEventListener('change', update)
    update()
    return button
}
