// A page that `sonde report serve` handed out: links to its other pages, and what goes on comes anew.
//
// Model:   the server says in the data's element that it did, and how soon a page comes anew. Its field Refresh leads back to the view that was
//          opened, so the page comes a second earlier by itself: in the view, and at the place, where its reader is.
// Checked: `a run that goes on comes anew where its reader is`.
import { h } from '../dom'

/** A page comes by itself so much earlier than by the server's word. */
const EARLIER_S = 1

export interface Server {
    /** After so many seconds it comes anew; null where nothing goes on. */
    refreshS: number | null
}

/** The server; null where the page is a file. */
export function served(): Server | null {
    const said = document.getElementById('view')?.dataset
    if (said?.served === undefined) return null
    return { refreshS: Number(said.refreshS) || null }
}

export const runLink = (run: string): string => `/runs/${encodeURIComponent(run)}`
export const historyLink = (name: string | null): string => (name === null ? '/history' : `/history?${new URLSearchParams({ name })}`)
export const compareLink = (from: string, to: string, ignore: string[] = []): string =>
    `/compare?${new URLSearchParams({ from, to, ...(ignore.length ? { ignore: ignore.join(',') } : {}) })}`

/** A run by its id: a link where there is a server. */
export const runName = (run: string): HTMLElement => (served() ? h('a', { href: runLink(run), class: 'run-id' }, run) : h('span', { class: 'run-id' }, run))

/** Lets what goes on come anew. */
export function comeAnew(): void {
    const refreshS = served()?.refreshS ?? null
    if (refreshS !== null) setTimeout(() => window.location.reload(), (refreshS - EARLIER_S) * 1000)
}

/** The page of a run that was served: with a link to the list, and anew where it goes on. */
export function live(): void {
    if (!served()) return
    document.querySelector('nav.top .brand')?.after(h('a', { class: 'home', href: '/' }, 'All runs'))
    comeAnew()
}
