// The page as a whole in a real browser, from a file: the sample, a page without a run, one full of hostile strings, and the real
// report that SONDE_PAGE names, if any.
import assert from 'node:assert/strict'
import { statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import type { View } from '../src/view'
import { IS_LONG, PAGE_BYTES_MAX, SHOTS, TAKES_PICTURES, browserTest, file, go, open, others, pages, sample, template, viewsOf, type Opened } from './browser'
import { assessedView, cutView, packed, pairsView, sampleView, sweptView } from './sample'

/** A reader walks through a view by the tab key in so many steps at most. */
const STOPS_MAX = 90

test('the page has its markers once, and is small', () => {
    for (const marker of ['<!--view-begin-->', '<!--view-end-->', 'id="view"']) assert.equal(template.split(marker).length, 2, marker)
    assert.ok(template.includes('<!--view-begin--><script type="application/json" id="view">null</script><!--view-end-->'))
    assert.ok(!/(?:src|href)="(?!data:)[^#"]/.test(template.split('<script>')[0] ?? ''), 'the page names another file')
    for (const [name, path] of pages()) assert.ok(statSync(path).size < PAGE_BYTES_MAX, `${name}: ${statSync(path).size} bytes`)
})

browserTest('a page without a run says so', async () => {
    const { page, troubles } = await open(file('empty', undefined))
    assert.match(await page.innerText('main'), /holds no run/)
    assert.deepEqual(troubles, [])
    const newer = await open(file('newer', { schema: 'sonde-view/2' }))
    assert.match(await newer.page.innerText('main'), /sonde-view\/1, and was given sonde-view\/2/)
    assert.deepEqual(newer.troubles, [])
})

browserTest('nothing is logged and no request leaves, in light and dark, at any width, in print', async () => {
    const all = [...pages().map((one) => [...one, [1440, 1024, 768, 390, 320]] as const), ...others().map((one) => [...one, [1280, 320]] as const)]
    for (const [name, path, widths] of all) {
        for (const colorScheme of ['light', 'dark'] as const) {
            // A scheme changes colours alone, so that its widest and narrowest window say enough.
            const own = colorScheme === 'light' ? widths : [widths[0], widths.at(-1) ?? 320]
            let opened: Opened | undefined
            for (const width of own) {
                // The window is made narrower, as by a reader; the long tier loads the page anew at each width.
                if (opened && !IS_LONG) {
                    await opened.page.setViewportSize({ width, height: 900 })
                } else {
                    await opened?.page.context().close()
                    opened = await open(path, { colorScheme, viewport: { width, height: 900 } })
                }
                const { page } = opened
                await page.waitForSelector('h1')
                // What fits into the narrowest window and the widest fits between.
                const views = await viewsOf(page)
                for (const view of IS_LONG || width === own[0] || width === own.at(-1) ? views : views.slice(0, 1)) {
                    await go(page, view)
                    // Figures follow the window when they are next drawn.
                    await page.waitForFunction(() => document.documentElement.scrollWidth === document.documentElement.clientWidth, undefined, { timeout: 5_000 }).catch(() => undefined)
                    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
                    assert.equal(wide, 0, `${name}, ${view} at ${width}: ${wide} px of horizontal scroll`)
                }
                if (IS_LONG || width === own.at(-1)) await onPaper(opened, colorScheme)
                assert.deepEqual(opened.troubles, [], `${name}, ${colorScheme}, ${width}`)
            }
            await opened?.page.context().close()
        }
    }
})

/** In print there is no bar, and the paper is white. */
async function onPaper({ page }: Opened, colorScheme: 'light' | 'dark'): Promise<void> {
    await page.emulateMedia({ media: 'print', colorScheme })
    assert.equal(await page.isVisible('nav.top'), false)
    const paper = await page.evaluate(() => getComputedStyle(document.body).backgroundColor)
    assert.equal(paper, 'rgb(255, 255, 255)')
}

browserTest('packed rows give the same page', async () => {
    const texts: string[][] = []
    for (const [name, view] of [['plain', sampleView()], ['packed', packed(sampleView())]] as const) {
        const { page, troubles } = await open(file(name, view))
        const own: string[] = []
        for (const one of await viewsOf(page)) {
            await go(page, one)
            own.push(await page.innerText('main'))
        }
        texts.push(own)
        assert.deepEqual(troubles, [])
    }
    assert.ok((texts[0]?.length ?? 0) >= 7)
    assert.deepEqual(texts[0], texts[1])
})

browserTest('an empty run is drawn without trouble', async () => {
    const view: View = { ...sampleView(), results: [], distributions: [], launch_medians: [], fits: [], findings: [], interference: [], networks: [], hosts: [], events: [], warnings: [], conditions: [] }
    const { page, troubles } = await open(file('bare', view))
    assert.match(await page.innerText('h1'), /Nothing was measured/)
    assert.deepEqual(troubles, [])
})

browserTest('the theme changes by the button, and its series change with it', async () => {
    const { page } = await open(sample(), { view: 'latency', colorScheme: 'light' })
    const colours = (): Promise<string[]> => page.evaluate(() => [getComputedStyle(document.body).backgroundColor, getComputedStyle(document.querySelector('#latency g[data-part="warm"]') as Element).stroke])
    const light = await colours()
    await page.click('.theme')
    const dark = await colours()
    assert.ok(light.every((colour, at) => colour !== dark[at]), `${light} ${dark}`)
    await page.click('.theme')
    assert.deepEqual(await colours(), light)
})

browserTest('hostile strings are inert', async () => {
    const evil = '</script><img src=x onerror="alert(1)"><svg onload=alert(2)>"\'&{{}}<!--'
    const poison = (value: unknown): unknown => {
        if (typeof value === 'string') return ['sonde-view/1', 'complete', 'measured', 'cold', 'warm'].includes(value) || /_(ns|bps|share|byte)$/.test(value) ? value : `${value}${evil}`
        if (Array.isArray(value)) return value.map(poison)
        if (value && typeof value === 'object') return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, poison(inner)]))
        return value
    }
    const whole: View = { ...sweptView(), anatomy: cutView().anatomy, heat: pairsView(6).heat }
    const figures = whole.heat?.maps.map((map) => map.figure) ?? []
    const hostile = poison(whole) as View
    // What is a name to the page, and no text from outside.
    hostile.heat?.maps.forEach((map, at) => Object.assign(map, { figure: figures[at] }))
    const path = file('hostile', hostile)
    const { page, troubles } = await open(path, { view: 'pairs' })
    assert.equal(await page.locator('#pairs svg.heat').count(), 3)
    await page.locator('#pairs [data-pair="0 1"]').first().hover()
    assert.ok((await page.innerText('.tooltip')).includes('<svg onload'), 'a host’s name is text')
    assert.ok((await page.innerText('h1')).length > 0)
    for (const view of await viewsOf(page)) {
        await go(page, view)
        assert.equal(await page.locator('img').count(), 0)
        assert.equal(await page.locator('[onerror], [onload]').count(), 0)
        assert.ok((await page.innerText('main')).includes('onerror'), 'the strings are shown as text')
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
        assert.equal(wide, 0, view)
    }
    assert.deepEqual(troubles, [])
})

browserTest('every control has a name, the headings are in order, and the tab key has few stops', async () => {
    const { page } = await open(file('assessed', assessedView()))
    for (const view of await viewsOf(page)) {
        await go(page, view)
        await checked(page, view)
    }
})

async function checked(page: Page, view: string): Promise<void> {
    const nameless = await page.evaluate(() => [...document.querySelectorAll('button, select, input, a, [role="region"], [role="img"]')]
        .filter((element) => !(element.textContent?.trim() || element.getAttribute('aria-label'))).map((element) => element.outerHTML.slice(0, 80)))
    assert.deepEqual(nameless, [], view)
    const levels = await page.evaluate(() => [...document.querySelectorAll('h1, h2, h3')].filter((heading) => (heading as HTMLElement).offsetParent).map((heading) => Number(heading.tagName[1])))
    assert.equal(levels.filter((level) => level === 1).length, 1, view)
    assert.ok(levels.every((level, at) => at === 0 || level <= (levels[at - 1] ?? 1) + 1), `${view}: ${levels.join()}`)
    const lost = await page.evaluate(() => [...document.querySelectorAll('a[href^="#"]')].map((link) => link.getAttribute('href') ?? '').filter((href) => !document.querySelector(`[data-view="${href.slice(1).split('?')[0]}"].view`)))
    assert.deepEqual(lost, [], view)
    const stops = await page.evaluate(() => [...document.querySelectorAll<HTMLElement>('a[href], button, select, input, summary, [tabindex]')].filter((one) => one.tabIndex >= 0 && one.offsetParent).length)
    assert.ok(stops <= STOPS_MAX, `${view}: ${stops} stops of the tab key`)
}

browserTest('it prints on paper, and its pictures are taken where they are asked for', async () => {
    for (const [name, path] of [...pages(), ...others()]) {
        const phone = await open(path, { viewport: { width: 390, height: 844 } })
        const paper = await phone.page.pdf({ format: 'A4', printBackground: false })
        assert.ok(paper.length > 10_000, `${name}: ${paper.length} bytes`)
        if (TAKES_PICTURES) {
            writeFileSync(join(SHOTS, `${name}.pdf`), paper)
            await phone.page.screenshot({ path: join(SHOTS, `${name}-phone.png`) })
        }
        await phone.page.context().close()
        for (const colorScheme of TAKES_PICTURES ? (['light', 'dark'] as const) : []) {
            const { page } = await open(path, { colorScheme, viewport: { width: 1280, height: 1000 } })
            // Bars that stick to the window would lie over the sections.
            await page.addStyleTag({ content: 'nav.top, .filters { position: static !important }' })
            for (const view of await viewsOf(page)) {
                await go(page, view)
                await page.screenshot({ path: join(SHOTS, `${name}-${colorScheme}-${view}.png`), fullPage: true })
            }
            await page.context().close()
        }
    }
})
