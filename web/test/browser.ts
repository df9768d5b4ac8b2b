// A real browser for the tests of the page, one for each file of tests, and the pages that these open in it.
//
// Chromium is the system's; without one, each of these tests is skipped. SONDE_SCREENSHOTS=1, or SONDE_TESTS=long, leaves
// pictures of each section in target/screenshots.
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join, resolve } from 'node:path'
import { after, before, test, type TestContext } from 'node:test'
import { pathToFileURL } from 'node:url'
import { chromium, type Browser, type BrowserContextOptions, type ElementHandle, type Locator, type Page, type Response } from 'playwright-core'
import { assessedView, contentionView, cutView, embed, filesView, kernelsView, knobbedView, librariesView, loadedView, pairsView, sampleView, sweptView } from './sample'

// npm runs the tests in the folder of package.json.
const WEB = process.cwd()
export const SHOTS = resolve(WEB, '../target/screenshots')
/** Whether everything is wanted that takes minutes: `make test-long`. */
export const IS_LONG = process.env.SONDE_TESTS === 'long'
export const TAKES_PICTURES = Boolean(process.env.SONDE_SCREENSHOTS) || IS_LONG
export const PAGE_BYTES_MAX = 2_000_000
const BROWSER = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable']
    .flatMap((name) => (process.env.PATH ?? '').split(delimiter).map((folder) => join(folder, name)))
    .find((path) => existsSync(path))

export const template = readFileSync(join(WEB, 'dist/page.html'), 'utf8')
let browser: Browser | undefined
let folder = ''

before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'sonde-page-'))
    mkdirSync(SHOTS, { recursive: true })
    if (BROWSER) browser = await chromium.launch({ executablePath: BROWSER, args: process.getuid?.() === 0 ? ['--no-sandbox'] : [] })
})

after(async () => {
    await browser?.close()
    rmSync(folder, { recursive: true, force: true })
})

/** A page file that holds this view. */
export const file = (name: string, view: unknown): string => fileOf(name, view === undefined ? template : embed(template, view))

/** A file of this text. */
export function fileOf(name: string, text: string): string {
    const path = join(folder, `${name}.html`)
    writeFileSync(path, text)
    return path
}

export interface Opened {
    page: Page
    /** Console messages at warning or above, page errors and requests that were refused. */
    troubles: string[]
}

/** Opens a view of a file, the first unless it is named, in a browser that lets nothing but files through. */
export async function open(path: string, { view = '', ...options }: BrowserContextOptions & { view?: string } = {}): Promise<Opened> {
    const own = pathToFileURL(path).href
    const opened = await watched((url) => url === own, options)
    await opened.page.goto(`${own}${view && `#${view}`}`)
    return opened
}

/** Opens a place of a server, in a browser that lets nothing but its pages through. */
export async function openServed(server: string, place: string): Promise<Opened & { response: Response | null }> {
    const opened = await watched((url) => url.startsWith(server), {})
    return { ...opened, response: await opened.page.goto(`${server}${place}`) }
}

/** A page whose troubles are written down; a request of another place than `isOwn` is one. */
async function watched(isOwn: (url: string) => boolean, options: BrowserContextOptions): Promise<Opened> {
    assert.ok(browser)
    // A page that still scrolls smoothly moves under the pointer, the more so on a machine that builds beside the tests.
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, acceptDownloads: true, reducedMotion: 'reduce', ...options })
    context.setDefaultTimeout(120_000)
    const page = await context.newPage()
    const troubles: string[] = []
    page.on('console', (message) => {
        if (['error', 'warning'].includes(message.type())) troubles.push(`${message.type()}: ${message.text()}`)
    })
    page.on('pageerror', (error) => troubles.push(`page error: ${error.message}`))
    page.on('dialog', (dialog) => {
        troubles.push(`dialog: ${dialog.message()}`)
        void dialog.dismiss()
    })
    await page.route('**/*', (route) => {
        const url = route.request().url()
        if (isOwn(url)) return route.continue()
        troubles.push(`request: ${url}`)
        return route.abort()
    })
    return { page, troubles }
}

/** Goes to another view by its link. */
export async function go(page: Page, view: string): Promise<void> {
    await page.evaluate((name) => (window.location.hash = name), view)
    await page.waitForSelector(`[data-view="${view.split('?')[0]}"].view:not([hidden])`)
}

/** The views that a page has. */
export const viewsOf = (page: Page): Promise<string[]> => page.$$eval('.view', (views) => views.map((view) => (view as HTMLElement).dataset.view ?? ''))

/** A picture of a part of the page, where pictures are asked for. */
export async function picture(part: Locator | ElementHandle, name: string): Promise<void> {
    if (TAKES_PICTURES) await part.screenshot({ path: join(SHOTS, `${name}.png`) })
}

/** A test in the browser; skipped where there is none. */
export function browserTest(name: string, body: (context: TestContext) => Promise<void>): void {
    test(name, { timeout: 300_000 }, async (context) => {
        if (!browser) {
            console.log('skipped: no chromium')
            context.skip('no chromium')
            return
        }
        await body(context)
        // What a page still draws takes time from the next one.
        await Promise.all(browser.contexts().map((one) => one.close()))
    })
}

export const sample = (): string => file('sample', sampleView())
const real = process.env.SONDE_PAGE
/** Those of an assessment, and the real one; written once. */
let assessments: [string, string][] | undefined
export const pages = (): [string, string][] => (assessments ??= [['sample', sample()], ['assessed', file('assessed', assessedView())], ['loaded', file('loaded', loadedView())], ...(real ? [['report', resolve(real)] as [string, string]] : [])])

/** Those that have other figures than an assessment; written once. */
let otherFigures: [string, string][] | undefined
export const others = (): [string, string][] => (otherFigures ??= [['pairs', file('pairs', pairsView(24))], ['thousand', file('thousand', pairsView(1000))], ['swept', file('swept', sweptView())], ['files', file('files', filesView())], ['contention', file('contention', contentionView())], ['knobbed', file('knobbed', knobbedView())], ['cut', file('cut', cutView())], ['libraries', file('libraries', librariesView())], ['kernels', file('kernels', kernelsView())]])

export const drawn = (page: Page, part: string, series: string): Promise<number> =>
    page.evaluate(([name, id]) => [...document.querySelectorAll<SVGGElement>('.plot g[data-series]')].filter((group) => group.dataset.series === id && group.dataset.part?.startsWith(name ?? '') && group.childElementCount > 0).length, [part, series])
