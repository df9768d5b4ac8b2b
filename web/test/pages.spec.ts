// The pages beside a run's, in a real browser: lists, comparisons and histories, as files, as a server hands them out, and by the server itself.
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { change, changeTicks, ticksBetween } from '../src/pages/change'
import { browserTest, fileOf, open, openServed, picture, template, viewsOf, type Opened } from './browser'
import { comparedOf, historyOf, listed, runsOf, served } from './otherpages'
import { embed } from './sample'

/** A reader walks through a page by the tab key in so many steps at most. */
const STOPS_MAX = 100
const plain = (text: string): string => text.replace(/\u202f/g, ' ')

const all = (): [string, string][] => [
    ['runs', fileOf('runs', served(template, runsOf(63), 10))],
    ['no-runs', fileOf('no-runs', served(template, runsOf(0)))],
    ['compared', fileOf('compared', served(template, comparedOf(7)))],
    ['compared-many', fileOf('compared-many', embed(template, comparedOf(90)))],
    ['compared-none', fileOf('compared-none', served(template, comparedOf(0)))],
    ['history', fileOf('history', served(template, historyOf(40, 18)))],
    ['history-short', fileOf('history-short', embed(template, historyOf(3, 4)))],
]

test('changes are written by their size, and have room on their axis', () => {
    const cases: [number, string][] = [[1, '±0 %'], [1.05, '+5 %'], [0.995, '−0.5 %'], [2, '×2'], [0.25, '÷4'], [1.9, '+90 %'], [0.51, '−49 %']]
    for (const [ratio, text] of cases) assert.equal(plain(change(ratio)), text)
    for (const [low, high, pixels] of [[0.97, 1.04, 300], [0.5, 3, 600], [0.001, 1000, 240], [0.999, 1.001, 300]] as const) {
        const ticks = changeTicks(low, high, pixels)
        const places = ticks.map((tick) => (Math.log(tick / low) / Math.log(high / low)) * pixels)
        assert.ok(ticks.includes(1) && ticks.every((tick) => tick >= low && tick <= high), String(ticks))
        assert.ok(places.every((at, nth) => nth === 0 || at - (places[nth - 1] ?? 0) >= 45), String(places))
    }
    assert.deepEqual(ticksBetween(58_000, 70_000, 4), [60_000, 65_000, 70_000])
    assert.deepEqual(ticksBetween(5, 5, 4), [5])
})

browserTest('nothing is logged and no request leaves, in light and dark, at any width, in print', async () => {
    const axe = readFileSync(createRequire(join(process.cwd(), 'package.json')).resolve('axe-core/axe.min.js'), 'utf8')
    for (const [name, path] of all()) {
        for (const colorScheme of ['light', 'dark'] as const) {
            for (const width of [1280, 390, 320]) {
                const opened = await open(path, { colorScheme, viewport: { width, height: 900 }, bypassCSP: true })
                const { page, troubles } = opened
                await page.waitForSelector('h1')
                await page.waitForFunction(() => document.documentElement.scrollWidth === document.documentElement.clientWidth, undefined, { timeout: 5_000 }).catch(() => undefined)
                const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
                assert.equal(wide, 0, `${name} at ${width}: ${wide} px of horizontal scroll`)
                if (width === 1280 || width === 390) await picture(page.locator('body'), `page-${name}-${colorScheme}-${width}`)
                if (width === 1280) await checked(opened, name)
                await page.emulateMedia({ media: 'print' })
                assert.equal(await page.isVisible('nav.top'), false)
                await page.emulateMedia({ media: 'screen' })
                assert.deepEqual(troubles, [], `${name}, ${colorScheme}, ${width}`)
                if (width === 1280) {
                    await page.addScriptTag({ content: axe })
                    const found = await page.evaluate(async () => {
                        const { violations } = await (window as unknown as { axe: { run: (options: object) => Promise<{ violations: { id: string; impact: string; nodes: { html: string }[] }[] }> } }).axe.run({ resultTypes: ['violations'] })
                        return violations.filter(({ impact }) => impact === 'serious' || impact === 'critical').map(({ id, nodes }) => `${id}: ${nodes.length} as ${nodes[0]?.html.slice(0, 160)}`)
                    })
                    assert.deepEqual(found, [], `${name}, ${colorScheme}`)
                }
                await page.context().close()
            }
        }
    }
})

async function checked({ page }: Opened, name: string): Promise<void> {
    const nameless = await page.evaluate(() => [...document.querySelectorAll('button, select, input, a, [role="region"], [role="img"]')]
        .filter((element) => !(element.textContent?.trim() || element.getAttribute('aria-label'))).map((element) => element.outerHTML.slice(0, 80)))
    assert.deepEqual(nameless, [], name)
    const headings = await page.evaluate(() => [...document.querySelectorAll('h1, h2, h3')].filter((heading) => (heading as HTMLElement).offsetParent).map((heading) => Number(heading.tagName[1])))
    assert.equal(headings.filter((level) => level === 1).length, 1, name)
    assert.ok(headings.every((level, at) => at === 0 || level <= (headings[at - 1] ?? 1) + 1), `${name}: ${headings.join()}`)
    const stops = await page.evaluate(() => [...document.querySelectorAll<HTMLElement>('a[href], button, select, input, summary, [tabindex]')].filter((one) => one.tabIndex >= 0 && one.offsetParent).length)
    assert.ok(stops <= STOPS_MAX, `${name}: ${stops} stops of the tab key`)
}

browserTest('two runs are chosen from the list', async () => {
    const { page, troubles } = await open(fileOf('runs', served(template, runsOf(63))))
    const compare = page.locator('.compare-chosen')
    const wanted = (from: number, to: number): string => `/compare?from=${listed(from).run}&to=${listed(to).run}`
    assert.match(await page.innerText('h1'), /^75 runs, 1 of them not ended\.$/)
    // The newest has not ended: the two after it are chosen.
    assert.equal(await compare.getAttribute('href'), wanted(2, 1))
    assert.equal(await page.locator('tbody tr').count(), 30)
    // A third takes the place of the one that was chosen first.
    await page.locator('tbody tr').nth(4).locator('input').check()
    assert.equal(await compare.getAttribute('href'), wanted(4, 2))
    await page.locator('tbody tr').nth(2).locator('input').uncheck()
    assert.equal(await compare.getAttribute('href'), null)
    assert.equal(await compare.getAttribute('aria-disabled'), 'true')
    await page.locator('tbody tr').nth(3).locator('input').check()
    assert.equal(await compare.getAttribute('href'), wanted(4, 3))
    assert.equal(await compare.innerText(), 'Compare change-4 with nightly')
    assert.equal(await page.locator('tbody tr').first().locator('th a').getAttribute('href'), `/runs/${listed(0).run}`)
    assert.equal(await page.locator('tbody tr').first().locator('td a').first().getAttribute('href'), '/history?name=nightly')
    await page.click('.more')
    assert.equal(await page.locator('tbody tr').count(), 63)
    assert.match(await page.innerText('main'), /12 older runs are not in this list/)
    assert.deepEqual(troubles, [])
})

browserTest('runs are found by a word', async () => {
    const { page } = await open(fileOf('runs', served(template, runsOf(63))))
    await page.fill('input[type="search"]', 'change-10')
    assert.deepEqual(await page.locator('tbody th').allInnerTexts(), [listed(10).run])
    await page.fill('input[type="search"]', 'PARTIAL nightly')
    assert.ok((await page.locator('tbody tr').count()) > 1)
    await page.fill('input[type="search"]', 'no such run')
    assert.match(await page.innerText('.nothing'), /No run has these words/)
})

browserTest('a comparison shows each change with its interval', async () => {
    const data = comparedOf(7)
    const { page, troubles } = await open(fileOf('compared', embed(template, data)))
    assert.equal(await page.innerText('h1'), data.comparison.sentence)
    // A file has no server to lead to.
    assert.equal(await page.locator('a[href^="/"]').count(), 0)
    assert.equal(await page.locator('#changes .change-point circle, #changes circle.change-point').count(), 7)
    assert.equal(await page.locator('#changes .change-interval line, #changes line.change-interval').count(), 6)
    await page.locator('#changes .plot').focus()
    await page.keyboard.press('ArrowRight')
    const said = plain(await page.innerText('#changes .figure > p'))
    assert.match(said, /latency of 2 B .*: A, median latency 23\.9 µs, B 25\.8 µs, change \+8 %, 95 % interval .* repetitions of A and B 8 and 8, result worse/)
    await page.locator('#changes .figure').hover()
    const [download] = await Promise.all([page.waitForEvent('download'), page.locator('#changes .saving button', { hasText: 'CSV' }).click()])
    const csv = readFileSync(await download.path()).toString().trim().split('\r\n')
    assert.equal(csv.length, 8)
    assert.match(csv[0] ?? '', /^configuration,.*ratio,ratio_low,ratio_high/)
    const rows = await page.locator('#rows tbody tr').allInnerTexts()
    assert.deepEqual(rows.map((row) => /worse|better|too few|no significant/.exec(row)?.[0]), ['worse', 'better', 'no significant', 'no significant', 'no significant', 'no significant', 'too few'])
    assert.deepEqual(troubles.filter((trouble) => !trouble.startsWith('request: blob:')), [])
    const many = await open(fileOf('many', embed(template, comparedOf(90))))
    assert.equal(await many.page.locator('#changes .change-point circle, #changes circle.change-point').count(), 40)
    await many.page.click('#changes .more')
    assert.equal(await many.page.locator('#changes .change-point circle, #changes circle.change-point').count(), 90)
})

browserTest('what only one run has is named', async () => {
    const { page } = await open(fileOf('compared', served(template, comparedOf(0))))
    assert.equal(await page.locator('#changes').count(), 0)
    assert.deepEqual((await page.locator('#differences tbody tr').allInnerTexts()).map((row) => row.replace(/\s+/g, ' ')), ['network wire fddi', 'sndbuf – 64KiB, 128KiB'])
    assert.equal(await page.locator('#differences > a').getAttribute('href'), `/compare?from=${listed(4).run}&to=${listed(1).run}&ignore=network%2Csndbuf`)
    assert.deepEqual(await page.locator('#only summary').allInnerTexts(), ['Only in A: 2 configurations', 'Only in B: 1 configuration'])
    assert.match(await page.innerText('#only'), /latency of 64 B over tcp on wire/)
})

browserTest('a history shows levels and changes', async () => {
    const { page, troubles } = await open(fileOf('history', embed(template, historyOf(40, 18))))
    const cards = page.locator('#changed .history')
    assert.equal(await cards.count(), 2)
    assert.equal(await cards.first().locator('.past circle, circle.past').count(), 40)
    assert.equal(await cards.first().locator('.level line, line.level').count(), 2)
    assert.equal(await cards.first().locator('.level-change line, line.level-change').count(), 1)
    const told = plain(await cards.first().innerText())
    assert.match(told, /Worse since .*: 61\.5 µs to 70\.7 µs, \+15 %/)
    assert.match(told, /kernel of h1 h2: 6\.1\.0 before, 6\.6\.2 now/)
    assert.match(told, /tcp_congestion_control: cubic before, not there now/)
    assert.match(await cards.nth(1).innerText(), /Nothing else that was recorded changed with it/)
    assert.equal(await page.locator('#unchanged .history').count(), 12)
    await page.click('#unchanged .more')
    assert.equal(await page.locator('#unchanged .history').count(), 16)
    // What comes to a page later is drawn in its next frame.
    await page.locator('#unchanged .history svg').nth(15).waitFor()
    assert.equal(await page.locator('#unchanged .history svg').count(), 16)
    assert.match(plain(await page.innerText('#unchanged')), /moved by \+3 % from its first run/)
    assert.deepEqual(troubles, [])
})

browserTest('hostile strings are inert on every page', async () => {
    const evil = '</script><img src=x onerror="alert(1)"><svg onload=alert(2)>"\'&<!--'
    const poison = (value: unknown): unknown => {
        if (typeof value === 'string') return /^sonde-|^(open|complete|partial|better|worse|same|unsure|latency_ns|throughput_bps)$/.test(value) ? value : `${value}${evil}`
        if (Array.isArray(value)) return value.map(poison)
        if (value && typeof value === 'object') return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, poison(inner)]))
        return value
    }
    for (const [name, data] of [['runs', runsOf(9)], ['compared', comparedOf(7)], ['history', historyOf(9, 5)]] as const) {
        const { page, troubles } = await open(fileOf(`hostile-${name}`, served(template, poison(data))))
        assert.ok((await page.innerText('main')).includes('onerror'), name)
        assert.equal(await page.locator('img, [onerror], [onload]').count(), 0, name)
        for (const href of await page.$$eval('a[href]', (links) => links.map((link) => link.getAttribute('href') ?? ''))) assert.match(href, /^(#|\/$|\/(runs\/|compare\?|history))/, name)
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
        assert.equal(wide, 0, name)
        assert.deepEqual(troubles, [], name)
    }
})

const COMMANDS = [process.env.SONDE_BIN, '../target/static/sonde', '../target/release/sonde']
/** The built command that can serve. */
const command = (): string | undefined => COMMANDS.flatMap((path) => (path ? [resolve(path)] : [])).find((path) => {
    try {
        return existsSync(path) && execFileSync(path, ['report', 'serve', '--help'], { stdio: ['ignore', 'pipe', 'ignore'] }).length > 0
    } catch {
        return false
    }
})

/** Serves a store of the corpus while `body` runs; false where that cannot be done here. */
async function serving(store: string, body: (url: string) => Promise<void>): Promise<boolean> {
    const program = command()
    if (!program) return false
    const folder = mkdtempSync(join(tmpdir(), 'sonde-serve-'))
    try {
        writeFileSync(join(folder, 'sonde.db'), execFileSync('xz', ['-dc', `../corpus/runs/${store}/sonde.db.xz`], { maxBuffer: 1 << 28 }))
        const child = spawn(program, ['report', 'serve', '--out', folder], { stdio: ['ignore', 'pipe', 'inherit'] })
        try {
            for await (const line of createInterface(child.stdout)) {
                const url = /http:\/\/[\d.]+:\d+\//.exec(line)?.[0]
                assert.ok(url, line)
                await body(url)
                break
            }
        } finally {
            child.kill('SIGINT')
        }
    } finally {
        rmSync(folder, { recursive: true, force: true })
    }
    return true
}

browserTest('the server’s pages lead to each other', async (context) => {
    const isDone = await serving('compared', async (url) => {
        const { page, troubles, response } = await openServed(url, '')
        assert.match(response?.headers()['content-security-policy'] ?? '', /^default-src 'none'; script-src 'sha256-[^']+'; .*frame-ancestors 'none'$/)
        const newest = await page.locator('tbody th a').first().innerText()
        await page.locator('tbody th a').first().click()
        await page.waitForSelector('[data-view="overview"].view:not([hidden])')
        assert.ok(page.url().endsWith(`/runs/${newest}`), page.url())
        for (const view of (await viewsOf(page)).slice(1, 4)) {
            await page.click(`nav .links a[href^="#${view}"]`)
            await page.waitForSelector(`[data-view="${view}"].view:not([hidden])`)
        }
        await page.click('nav .home')
        await page.waitForSelector('.compare-chosen[href]')
        await page.click('.compare-chosen')
        await page.waitForSelector('.eyebrow:has-text("side by side")')
        assert.ok((await page.locator('#changes svg, #differences, #only').count()) > 0)
        await page.click('nav .links a[href="/history"]')
        await page.waitForSelector('.history svg')
        assert.equal(await page.getAttribute('nav .links [aria-current="page"]', 'href'), '/history')
        assert.deepEqual(troubles, [])
    })
    if (!isDone) context.skip('no built command that serves')
})

browserTest('a run that goes on comes anew where its reader is', async (context) => {
    const isDone = await serving('killed', async (url) => {
        const { page, troubles, response } = await openServed(url, 'runs/latest')
        assert.equal(response?.headers().refresh, '10')
        await page.click('nav .links a[href^="#conditions"]')
        await page.waitForSelector('[data-view="conditions"].view:not([hidden])')
        await page.evaluate(() => Object.assign(window, { isOld: true }))
        await page.waitForFunction(() => !('isOld' in window) && document.querySelector('[data-view="conditions"].view:not([hidden])'), undefined, { timeout: 60_000 })
        assert.ok(page.url().endsWith('/runs/latest#conditions'), page.url())
        assert.deepEqual(troubles, [])
    })
    if (!isDone) context.skip('no built command that serves')
})
