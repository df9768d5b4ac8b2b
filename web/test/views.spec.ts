// The views of the page in a real browser: which there are, what their links hold, what a reader takes out of them.
import assert from 'node:assert/strict'
import { readFileSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { test } from 'node:test'
import { viewOfRule } from '../src/rules'
import { IS_LONG, browserTest, drawn, file, go, open, others, pages, sample, viewsOf } from './browser'
import { assessedView, largeView, librariesView, packed, pairsView, sampleView } from './sample'

const TCP = JSON.stringify(['ethernet-100', 'tcp', 'block'])

test('each rule leads to a view', () => {
    const views = [...readFileSync('src/views.ts', 'utf8').matchAll(/\{ id: '(\w+)'/g)].map(([, id]) => id)
    const rules = [...readFileSync('../docs/findings.md', 'utf8').matchAll(/^\| `([a-z-]+)` \| (?:warning|advice|note)/gm)].map(([, rule]) => rule ?? '')
    assert.ok(views.length >= 10 && rules.length > 60, `${views.length} ${rules.length}`)
    for (const rule of rules) assert.ok(views.includes(viewOfRule(rule)), `${rule}: ${viewOfRule(rule)}`)
    assert.deepEqual(['host-slow', 'kernel-route', 'cold-start', 'library-cost', 'disturbed', 'window-limited', 'window-bound', 'not-measured'].map(viewOfRule), ['pairs', 'kernels', 'coldstart', 'libraries', 'trust', 'throughput', 'files', 'rows'])
})

browserTest('each view opens by its link', async () => {
    // Each view is in one of these.
    const some = [...pages(), ...others()].filter(([name]) => IS_LONG || ['assessed', 'loaded', 'kernels', 'files', 'contention', 'pairs', 'libraries'].includes(name))
    const opened = new Set<string>()
    for (const [name, path] of some) {
        const { page, troubles } = await open(path)
        const views = await viewsOf(page)
        assert.equal(views[0], 'overview')
        for (const view of views) {
            opened.add(view)
            await page.click(`nav .links a[href^="#${view}"]`)
            await page.waitForSelector(`[data-view="${view}"].view:not([hidden])`)
            const shown = await page.$$eval('.view:not([hidden])', (all) => all.map((one) => (one as HTMLElement).dataset.view))
            assert.deepEqual(shown, [view], name)
            assert.equal(await page.getAttribute('nav [aria-current="page"]', 'href').then((href) => href?.slice(1).split('?')[0]), view)
            assert.equal(await page.locator('.view:not([hidden]) > section').count() > 0, true, `${name}, ${view}: nothing in it`)
        }
        // A section's link leads to its view; what no page has leads to the first.
        await page.goto(`${page.url().split('#')[0]}#conditions`)
        await page.waitForSelector('#conditions')
        assert.deepEqual(troubles, [])
    }
    const seen = [...readFileSync('src/views.ts', 'utf8').matchAll(/\{ id: '(\w+)'/g)].map(([, id]) => id)
    assert.deepEqual(seen.filter((view) => view && !opened.has(view)), [])
    const { page } = await open(sample(), { view: 'distributions' })
    assert.equal(await page.isVisible('#distributions'), true)
    assert.equal(await page.getAttribute('body', 'data-view'), 'latency')
    const nowhere = await open(sample(), { view: 'no-such-view?hide=999.x' })
    assert.equal(await nowhere.page.getAttribute('body', 'data-view'), 'overview')
    assert.deepEqual(nowhere.troubles, [])
})

browserTest('a link gives the same page', async () => {
    const { page } = await open(sample(), { view: 'latency' })
    await page.locator('.filters .chip', { hasText: 'ethernet-1g' }).click()
    await page.locator('.filters .chip', { hasText: 'cold' }).click()
    await page.locator('#latency .legend-entry').first().click()
    const state = async (from: typeof page): Promise<string[]> => from.$$eval('#latency .legend-entry, .filters .chip', (all) => all.map((one) => `${one.textContent} ${one.getAttribute('aria-pressed')}`))
    const [link, wanted] = [page.url().split('#')[1] ?? '', await state(page)]
    assert.match(link, /^latency\?hide=[\d.]+&cold=on$/)
    const other = await open(sample(), { view: link })
    assert.deepEqual(await state(other.page), wanted)
    // The choice goes along to another view, and back.
    await other.page.click('nav .links a[href^="#throughput"]')
    await other.page.waitForSelector('#throughput')
    assert.equal(await other.page.getAttribute('.filters .chip:has-text("ethernet-1g")', 'aria-pressed'), 'false')
    await other.page.goBack()
    await other.page.waitForSelector('#latency .legend-entry')
    assert.deepEqual(await state(other.page), wanted)
    // A network may be asked for by its name.
    await go(other.page, 'latency?net=ethernet-100&path=tcp')
    assert.equal(await other.page.locator('#latency .legend-entry[aria-pressed="true"]').count(), 1)
    assert.ok((await drawn(other.page, 'warm', TCP)) > 0)
    // What the run has not shows everything.
    await go(other.page, 'latency?net=token-ring')
    assert.equal(await other.page.locator('#latency .legend-entry[aria-pressed="false"]').count(), 0)
})

browserTest('an assessment answers first', async () => {
    const view = assessedView()
    const { page, troubles } = await open(file('assessed', view))
    assert.match(await page.innerText('h1'), /^TCP reaches 95\.8.% or more of the ceiling on 3 of 4 networks/)
    assert.match((await page.innerText('.judgement')).replace(/\s+/g, ' '), /^Trust MEDIUM a disturbance leaves 12 of 200 figures uncertain a hypervisor .* Can be used: throughput, start-up\. Not without a look at the rows: latency\./)
    const rows = await page.locator('.answer-networks tbody tr').allInnerTexts()
    assert.equal(rows.length, 6)
    const words = (at: number): string => (rows[at] ?? '').replace(/\s+/g, ' ')
    assert.match(words(0), /^wan-100m-20ms 58\.1 Mb\/s of 94\.1 Mb\/s 61\.7 % 10 ms 10\.1 ms 23\.2 × 23\.2 Mb\/s read by NFS v3 46\.5 Mb\/s read by FTP$/)
    assert.match(words(2), /ethernet-1g 902 Mb\/s ~ of/)
    assert.match(words(5), /^loopback this machine alone, as a floor 21 Gb\/s no rate of its own 22 µs – /)
    // The layers of a message fill its bar; what is not known of it is hatched.
    const bars = await page.$$eval('.answer-networks .one-way .track', (all) => all.map((bar) => [...bar.querySelectorAll<HTMLElement>('.segment')].reduce((sum, piece) => sum + Number.parseFloat(piece.style.width), 0)))
    assert.ok(bars.length === 11 && bars.every((whole) => whole > 98.5 && whole < 100.1), String(bars))
    assert.deepEqual(await page.locator('.losses .loss-head b').allInnerTexts(), ['Library', 'Start'])
    assert.match(await page.innerText('.next'), /on a quiet machine\s+sonde assess --hosts 2 --network wire/)
    // A loss leads to its figures and to its findings.
    assert.equal(await page.locator('.losses a', { hasText: 'Figures' }).first().getAttribute('href'), '#rows')
    await page.locator('.losses a', { hasText: 'Figures' }).nth(1).click()
    await page.waitForSelector('#coldstart .panel')
    assert.equal(await page.locator('#coldstart .panel').count(), 1)
    await page.goBack()
    // The figures stand below, folded.
    assert.equal(await page.isVisible('#key table'), false)
    await page.click('#key summary')
    await page.waitForSelector('#key table')
    assert.equal(await page.locator('#key tbody tr').count(), 12)
    assert.deepEqual(troubles, [])
    const plain = await open(sample())
    assert.equal(await plain.page.isVisible('#key table'), true)
    assert.equal(await plain.page.locator('.judgement').count(), 0)
})

browserTest('findings are filtered, and lead to figures and rows', async () => {
    const { page, troubles } = await open(sample(), { view: 'findings' })
    const all = sampleView().findings
    const count = async (): Promise<number> => page.locator('.finding').count()
    const acting = all.filter((finding) => finding.severity !== 'note').length
    assert.ok(acting > 2 && acting < all.length)
    assert.equal(await count(), acting)
    await page.click('.chip[data-severity="note"]')
    assert.equal(await count(), all.length)
    assert.match(page.url(), /severity=warning.advice.note/)
    await page.click('.chip[data-severity="warning"]')
    assert.equal(await count(), all.filter((finding) => finding.severity !== 'warning').length)
    const network = all.find((finding) => finding.network !== null && finding.severity !== 'warning')?.network ?? ''
    await page.selectOption('#findings select[data-name="net"]', network)
    assert.equal(await count(), all.filter((finding) => finding.severity !== 'warning' && finding.network === network).length)
    // The link holds it all.
    const again = await open(sample(), { view: page.url().split('#')[1] ?? '' })
    assert.equal(await again.page.locator('.finding').count(), await count())
    await go(page, `findings?rule=${all.at(-1)?.rule}`)
    assert.equal(await count(), all.filter((finding) => finding.rule === all.at(-1)?.rule).length)
    await page.locator('.finding-links a', { hasText: 'Rows' }).first().click()
    await page.waitForSelector('#rows tbody tr')
    const found = all.at(-1)
    assert.equal(await page.inputValue('#rows select[aria-label="All networks"]'), found?.network)
    assert.ok((await page.locator('#rows tbody tr').count()) > 0)
    assert.deepEqual(troubles, [])
})

browserTest('a figure is saved as SVG, PNG and CSV', async () => {
    const { page, troubles } = await open(sample(), { view: 'latency?net=ethernet-100', colorScheme: 'dark' })
    const figure = page.locator('#latency .figure').first()
    const saved = async (kind: string): Promise<[string, Buffer]> => {
        await figure.hover()
        const [download] = await Promise.all([page.waitForEvent('download'), figure.locator('.saving button', { hasText: kind }).click()])
        return [download.suggestedFilename(), readFileSync(await download.path())]
    }
    const [name, svg] = await saved('SVG')
    assert.match(name, /^sonde-latency-against-message-size.*\.svg$/)
    const text = svg.toString()
    assert.match(text, /^<svg [^>]*xmlns="http:\/\/www.w3.org\/2000\/svg"/)
    assert.ok(text.includes('<title>Latency against message size') && text.includes('MTU'), text.slice(0, 300))
    // Colours are those of the page as it is, and of no style sheet.
    assert.ok(!/var\(|<style|class=/.test(text), /.{40}(var\(|<style|class=).{40}/.exec(text)?.[0])
    assert.match(text, /fill="#161a20"/)
    const [, png] = await saved('PNG')
    assert.deepEqual([...png.subarray(0, 8)], [0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10])
    const wide = await figure.locator('svg').evaluate((node) => (node as SVGSVGElement).viewBox.baseVal.width)
    assert.equal(png.readUInt32BE(16), Math.round(2 * wide))
    assert.ok(png.length > 10_000, `${png.length} bytes`)
    const csv = (await saved('CSV'))[1].toString().trim().split('\r\n')
    const wanted = sampleView().results.filter((row) => row.network === 'ethernet-100' && row.quantity === 'latency_ns' && row.phase === 'warm' && row.p50 !== null)
    assert.equal(csv.length, wanted.length + 1)
    const heads = (csv[0] ?? '').split(',')
    const values = csv.slice(1).map((line) => Number(line.split(',')[heads.indexOf('p50')]))
    assert.deepEqual(values.sort((a, b) => a - b), wanted.map((row) => row.p50 ?? 0).sort((a, b) => a - b))
    assert.deepEqual(troubles.filter((trouble) => !trouble.startsWith('request: blob:')), [])
})

browserTest('curves have their names, and few sizes have no line', async () => {
    const { page } = await open(sample(), { view: 'latency?path=tcp' })
    const names = await page.locator('#latency .end-name').allInnerTexts()
    assert.equal(names.length, await page.locator('#latency .legend-entry[aria-pressed="true"]').count())
    const places = (await page.$$eval('#latency .end-name', (all) => all.map((one) => Number(one.getAttribute('y'))))).sort((a, b) => a - b)
    assert.ok(places.every((y, at) => at === 0 || y - (places[at - 1] ?? 0) >= 12.9), String(places))
    const view = librariesView()
    view.results = view.results.filter((row) => row.path !== 'pvm:default' || row.quantity !== 'latency_ns' || [1, 1024, 61440].includes(row.size_bytes ?? 0))
    const few = await open(file('libraries', view), { view: 'latency?net=wire' })
    const lines = async (path: string): Promise<number> => few.page.evaluate((id) => [...document.querySelectorAll<SVGGElement>('#latency g[data-part="warm"]')].filter((one) => one.dataset.series === id).length, JSON.stringify(['wire', path, 'block']))
    const sizes = (path: string): number => new Set(view.results.filter((row) => row.network === 'wire' && row.path === path && row.quantity === 'latency_ns' && row.phase === 'warm').map((row) => row.size_bytes)).size
    assert.ok(sizes('tcp') >= 4 && sizes('pvm:default') < 4, `${sizes('tcp')} ${sizes('pvm:default')}`)
    assert.deepEqual([await lines('tcp'), await lines('pvm:default')], [1, 0])
})

browserTest('hosts are red, amber or green', async () => {
    const view = pairsView(8)
    const { page, troubles } = await open(file('pairs', view), { view: 'pairs' })
    const lamps = await page.$$eval('.lamps li', (all) => all.map((one) => `${one.textContent} ${one.className}`))
    assert.deepEqual(lamps, ['h1 lamp-good', 'h2 lamp-fair', 'h3 lamp-good', 'h4 lamp-fair', 'h5 lamp-good', 'h6 lamp-bad', 'h7 lamp-good', 'h8 lamp-good'])
    await page.locator('.lamps li').nth(5).hover()
    assert.match(await page.innerText('.tooltip'), /^h6: blamed\. h6 is bad/)
    assert.match((await page.innerText('.judgement')).replace(/\s+/g, ' '), /^All pairs FAIL h6 is bad: .* h2 to h4 is slow\. Found four times of five: a host whose streams are 12 % slower/)
    // Where the verdict is inconclusive no host is said to be good.
    Object.assign(view.all_pairs ?? {}, { state: 'inconclusive' })
    view.heat?.marks.splice(0)
    const unsure = await open(file('unsure', view), { view: 'pairs' })
    assert.equal(await unsure.page.locator('.lamps .lamp-unknown').count(), 8)
    assert.deepEqual(troubles, [])
})

browserTest('time and what happened meanwhile are one picture', async () => {
    const view = sampleView()
    const { page } = await open(file('sample', view), { view: 'trust' })
    assert.equal(await page.locator('.meanwhile svg g[class^="meanwhile-"], .meanwhile svg path[class^="meanwhile-"]').count() >= 6, true)
    // Both axes of time begin and end at the same place.
    const [over, strip] = [await page.locator('#steadiness .u-over').boundingBox(), await page.locator('.meanwhile .plot').boundingBox()]
    assert.ok(over && strip && Math.abs(over.x - (strip.x + 56)) < 1.5, `${over?.x} ${strip?.x}`)
    assert.ok(Math.abs(over.x + over.width - (strip.x + strip.width - 12)) < 1.5, `${over.x + over.width} ${strip.x + strip.width}`)
    await page.focus('.meanwhile .plot')
    await page.keyboard.press('ArrowRight')
    await page.keyboard.press('ArrowRight')
    assert.match(await page.innerText('.meanwhile .figure > p'), /into the run: lasted 1\.8.s, busiest host.*55\..*%.*taken by a hypervisor 0\.4/)
})

browserTest('on a telephone a row is a card that says what each figure is', async () => {
    const { page } = await open(file('assessed', assessedView()), { viewport: { width: 390, height: 844 } })
    const cell = page.locator('.answer-networks td').first()
    assert.equal(await cell.evaluate((one) => getComputedStyle(one, '::before').content), '"TCP stream, of what is possible"')
    const [left, right] = await cell.evaluate((one) => [one.getBoundingClientRect().left, one.getBoundingClientRect().right])
    assert.ok((left ?? -1) >= 0 && (right ?? 999) <= 390, `${left} ${right}`)
    await go(page, 'rows')
    assert.equal(await page.locator('#rows tbody td').nth(4).evaluate((one) => getComputedStyle(one).display), 'flex')
})

browserTest('the keys go through a table and a legend, each one stop of the tab key', async () => {
    const { page } = await open(sample())
    await page.focus('.scroll.key')
    await page.keyboard.press('ArrowRight')
    assert.equal(await page.isVisible('.tooltip'), true)
    const first = await page.innerText('.tooltip')
    await page.keyboard.press('ArrowRight')
    assert.notEqual(await page.innerText('.tooltip'), first)
    await page.keyboard.press('Escape')
    assert.equal(await page.evaluate(() => document.activeElement?.classList.contains('key')), true)
    await go(page, 'latency')
    const entry = page.locator('#latency .legend-entry')
    await entry.first().focus()
    await page.keyboard.press('ArrowRight')
    assert.equal(await entry.nth(1).evaluate((one) => one === document.activeElement), true)
    assert.equal(await entry.evaluateAll((all) => all.filter((one) => (one as HTMLElement).tabIndex === 0).length), 1)
})

browserTest('axe finds nothing that keeps a reader out', async () => {
    const source = readFileSync(createRequire(join(process.cwd(), 'package.json')).resolve('axe-core/axe.min.js'), 'utf8')
    for (const [name, path] of [...pages(), ...others()]) {
        // All have the same colours, so that the dark ones of one page say enough.
        for (const colorScheme of IS_LONG || name === 'assessed' ? (['light', 'dark'] as const) : (['light'] as const)) {
            if (!IS_LONG && ['sample', 'loaded', 'thousand', 'knobbed'].includes(name)) continue
            const { page } = await open(path, { colorScheme, bypassCSP: true })
            await page.addScriptTag({ content: source })
            for (const view of await viewsOf(page)) {
                await go(page, view)
                const found = await page.evaluate(async () => {
                    const { violations } = await (window as unknown as { axe: { run: (options: object) => Promise<{ violations: { id: string; impact: string; nodes: { html: string }[] }[] }> } }).axe.run({ resultTypes: ['violations'] })
                    return violations.filter(({ impact }) => impact === 'serious' || impact === 'critical').map(({ id, nodes }) => `${id}: ${nodes.length} as ${nodes[0]?.html.slice(0, 160)}`)
                })
                assert.deepEqual(found, [], `${name}, ${view}, ${colorScheme}`)
            }
            await page.context().close()
        }
    }
})

browserTest('fifty thousand rows are a page below 5 MB', async () => {
    const path = file('large', packed(largeView(50_000)))
    const bytes = statSync(path).size
    assert.ok(bytes < 5_000_000, `${bytes} bytes`)
    const { page, troubles } = await open(path)
    await page.waitForSelector('.answer-networks')
    const paint = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN)
    console.log(`50 000 rows: ${(bytes / 1e6).toFixed(2)} MB, painted after ${Math.round(paint)} ms`)
    await go(page, 'rows')
    assert.match(await page.innerText('#rows .rows > .axis-note'), /^50.000 of 50.000 rows, the first 60 shown$/)
    await go(page, 'latency?net=wire&path=udp')
    assert.ok((await page.locator('#latency svg g[data-part="warm"]').count()) > 10)
    assert.deepEqual(troubles, [])
})
