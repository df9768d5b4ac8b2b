// The figures and tables of the page in a real browser: what they show, and what pointer and keyboard make of them.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { browserTest, drawn, file, go, open, pages, picture, sample } from './browser'
import { contentionView, cutView, kernelsView, knobbedView, librariesView, loadedView, filesView, pairsView, sweptView } from './sample'

browserTest('the anatomy of messages adds up', async () => {
    const view = cutView()
    const { page, troubles } = await open(file('cut', view), { view: 'latency' })
    const bars = await page.$$eval('#anatomy .track', (tracks) => tracks.map((track) => ({
        share: [...track.querySelectorAll<HTMLElement>('.segment')].reduce((sum, piece) => sum + Number.parseFloat(piece.style.width), 0),
        said: track.getAttribute('aria-label') ?? '',
    })))
    const rows = view.anatomy
    const most = Math.max(...rows.map((row) => row.one_way_ns))
    assert.equal(bars.length, rows.length)
    const wanted = rows.map((row) => (100 * row.one_way_ns) / most).sort((a, b) => a - b)
    bars.map(({ share }) => share).sort((a, b) => a - b).forEach((share, at) => assert.ok(Math.abs(share - (wanted[at] ?? 0)) < 0.01, `${share} of ${wanted[at]}`))
    assert.equal(bars.filter(({ said }) => said.includes('not attributed')).length, 2)
    assert.equal(bars.filter(({ said }) => said.includes('wire')).length, 2)
    // Idle and loaded of one size stand beside each other.
    assert.ok(bars[0]?.said.includes('1\u202fB') && bars[1]?.said.includes('1\u202fB'), JSON.stringify(bars))
    await picture(page.locator('#anatomy'), 'anatomy')
    assert.deepEqual(troubles, [])
    const without = await open(sample(), { view: 'latency' })
    assert.equal(await without.page.$('#anatomy'), null)
})

browserTest('the ladder of libraries adds up', async () => {
    const view = librariesView()
    const { page, troubles } = await open(file('libraries', view), { view: 'libraries' })
    const groups = await page.$$eval('#ladder .rungs', (all) => all.map((group) => ({
        title: group.querySelector('.rungs-title')?.textContent ?? '',
        bars: [...group.querySelectorAll('.track')].map((track) => ({
            share: [...track.querySelectorAll<HTMLElement>('.segment')].reduce((sum, piece) => sum + Number.parseFloat(piece.style.width), 0),
            said: track.getAttribute('aria-label') ?? '',
        })),
    })))
    // Messages and bytes on four networks; TCP, then four libraries.
    assert.equal(groups.length, 8)
    assert.ok(groups.every(({ bars }) => bars.length === 5), JSON.stringify(groups))
    const messages = groups.find(({ title }) => title.startsWith('a message of 1'))
    const rows = view.library.filter((row) => row.network === 'wire').map((row) => row.sizes[0])
    const totals = [rows[0]?.transport_ns ?? 0, ...rows.map((size) => size?.library_ns ?? 0)]
    const most = Math.max(...totals)
    messages?.bars.forEach(({ share }, at) => assert.ok(Math.abs(share - (100 * (totals[at] ?? 0)) / most) < 0.01, `${share} of ${totals[at]}`))
    assert.ok(messages?.bars[2]?.said.includes('pvm:default') && messages.bars[2].said.includes('library'), JSON.stringify(messages))
    await picture(page.locator('#ladder'), 'ladder')
    assert.deepEqual(troubles, [])
    const without = await open(sample(), { view: 'libraries' })
    assert.equal(await without.page.$('#ladder'), null)
})

browserTest('kernels have a graph each and a curve for each load', async () => {
    const view = kernelsView()
    const { page, troubles } = await open(file('kernels', view), { view: 'kernels' })
    assert.match(await page.innerText('h1'), /^2 kernels over atm-oc3c:vc=svc: idle, ranks communicate for 1.% to 75.% of the time\.$/)
    const panels = page.locator('#kernels .kernel-curves .panel')
    assert.deepEqual(await panels.locator('h3').allInnerTexts(), ['IS, class upc', 'EP, class upc'])
    const drawn = (name: string): Promise<number[]> => panels.evaluateAll((all, part) => all.map((panel) => [...panel.querySelectorAll(`g.${part}, .${part}`)].reduce((sum, group) => sum + (group.tagName === 'g' ? group.childElementCount : 1), 0)), name)
    // Three loads of each; under load shared memory was not measured.
    assert.deepEqual(await drawn('kernel-curve'), [3, 3])
    assert.deepEqual(await drawn('kernel-curve-points'), [10, 10])
    assert.deepEqual(await drawn('kernel-interval'), [10, 10])
    const colours = await panels.first().locator('.kernel-curve-points').evaluateAll((curves) => new Set(curves.map((curve) => getComputedStyle(curve.tagName === 'g' ? curve.firstElementChild ?? curve : curve).stroke)).size)
    assert.equal(colours, 3)
    const places = await panels.first().locator('svg').innerHTML()
    for (const place of ['one rank alone', '1 host, native:shm', '4 hosts, pvm:default', '4 hosts, pvm:direct']) assert.ok(places.includes(place), place)
    // Each point tells its figures.
    await panels.first().locator('.plot').focus()
    await page.keyboard.press('ArrowRight')
    assert.match(await panels.first().locator('.figure > p').innerText(), /IS · idle: time 1.s.*over the reference 5.×.*communicating 0.%/)
    assert.equal(await page.locator('.filters').count(), 0)
    await picture(page.locator('#kernels'), 'kernels')
    assert.deepEqual(troubles, [])
    // Under one load places are kinds, and no line joins them.
    const idle = kernelsView()
    idle.kernels = idle.kernels.filter((row) => row.load === null)
    const alone = await open(file('kernels-idle', idle), { view: 'kernels' })
    assert.equal(await alone.page.locator('#kernels .kernel-curve').count(), 0)
    assert.ok((await alone.page.locator('#kernels .kernel-curve-points').count()) > 0)
    const without = await open(sample(), { view: 'kernels' })
    assert.equal(await without.page.$('#kernels'), null)
    await go(without.page, 'latency')
    assert.equal(await without.page.locator('.filters').count(), 1)
})

browserTest('what a paper prints is hollow, and beside our figures', async () => {
    const view = kernelsView()
    const { page, troubles } = await open(file('kernels', view), { view: 'kernels' })
    const [is, ep] = [page.locator('#kernels .kernel-curves .panel').nth(0), page.locator('#kernels .kernel-curves .panel').nth(1)]
    const hollow = is.locator('.kernel-printed-points circle, circle.kernel-printed-points, .kernel-printed-points path')
    assert.equal(await hollow.count(), 6)
    assert.equal(await ep.locator('.kernel-printed-points').count(), 0)
    assert.match(await page.innerText('#kernels .line-key'), /printed: a study of kernels, Table 2/)
    for (const one of await page.locator('#kernels .kernel-tables details').all()) await one.locator('summary').click()
    const times = page.locator('#kernels .kernel-tables details').first()
    const line = (await times.locator('tbody tr', { hasText: 'pvm:direct' }).filter({ hasText: '0.9' }).first().innerText()).replace(/\s+/g, ' ')
    assert.match(line, /30 to 31\.5 s/)
    const others = page.locator('#kernels .kernel-tables details').last()
    assert.match(await others.locator('summary').innerText(), /^Printed for other machines: one time$/)
    const messages = page.locator('#kernels .kernel-tables details').nth(1)
    assert.match(await messages.locator('summary').innerText(), /beside a study of kernels, Table 1/)
    assert.match((await messages.locator('tbody tr', { hasText: 'pvm:direct' }).first().innerText()).replace(/\s+/g, ' '), /612.*599/)
    assert.deepEqual(troubles, [])
})

browserTest('the kernels are told at a glance', async () => {
    const view = kernelsView()
    const { page, troubles } = await open(file('kernels', view), { view: 'kernels' })
    assert.deepEqual(await page.locator('#kernels .answers dt').allInnerTexts(), ['Which route', 'Hosts or one host'])
    assert.deepEqual(await page.locator('#kernels .answers dd > p').allInnerTexts(), ['What kernel-route says, 0.', 'What kernel-placement says, 1.', 'What kernel-placement says, 2.'])
    assert.equal(await page.locator('#kernels .answers summary').innerText(), '1 more')
    const places = page.locator('#kernels .places')
    assert.deepEqual(await places.locator('thead th').allInnerTexts(), ['Kernel', 'Load', 'one rank alone', '1 host, native:shm', '4 hosts, pvm:default', '4 hosts, pvm:direct', 'default over direct'])
    const lines = (await places.locator('tbody tr').allInnerTexts()).map((line) => line.replace(/\s+/g, ' '))
    assert.equal(lines.length, 6)
    // Half of what the default route takes, at idle; three times that under load, and a paper beside both.
    assert.match(lines[0] ?? '', /^IS idle 5 × 1 × 4\.5 × printed 3\.6 × 2\.5 × printed 2 × 1\.8 × printed 1\.8 ×$/)
    assert.match(lines[2] ?? '', /^IS 0\.9 5 × 1 × idle – 13\.5 × 3 × idle printed 10\.8 × 7\.5 × 3 × idle printed 6 × 1\.8 × printed 1\.8 ×$/)
    assert.equal(await places.locator('.least').count(), 6)
    // Bars are cut into computing and communicating, and say which phases take most.
    const bars = await page.$$eval('#kernels-split .track', (tracks) => tracks.map((track) => [...track.querySelectorAll<HTMLElement>('.segment')].map((piece) => [Number.parseFloat(piece.style.width), piece.dataset.tip ?? ''] as const)))
    assert.equal(bars.length, 20)
    const [longest] = bars.filter((pieces) => Math.abs(pieces.reduce((sum, [wide]) => sum + wide, 0) - 100) < 0.01)
    assert.ok(longest && Math.abs((longest[1]?.[0] ?? 0) - 75) < 0.01, JSON.stringify(longest))
    assert.match(longest?.[1]?.[1] ?? '', /^communicating: 75.%.* most in keys .*, ranking /)
    await picture(page.locator('#kernels'), 'kernels-glance')
    assert.deepEqual(troubles, [])
    // What has no interval is the least, but not surely.
    for (const row of view.kernels) Object.assign(row, { ci95_low_ns: null, ci95_high_ns: null })
    const unsure = await open(file('glance-unsure', view), { view: 'kernels' })
    assert.equal(await unsure.page.locator('#kernels .places .least').count(), 0)
    assert.equal(await unsure.page.locator('#kernels .places td.number .strong').count(), 6)
    // Without a reference there are times, and nothing printed beside them; one place alone is no table.
    for (const row of view.kernels) Object.assign(row, { of_reference: null, reference: null })
    const plain = await open(file('glance-plain', view), { view: 'kernels' })
    assert.match(await plain.page.locator('#kernels .places').innerText(), /Time, by place[\s\S]*900.ms/)
    assert.equal(await plain.page.locator('#kernels .places td:not(:last-child) .print').count(), 0)
    view.kernels = view.kernels.filter((row) => row.path === 'pvm:direct')
    const lone = await open(file('glance-lone', view), { view: 'kernels' })
    assert.equal(await lone.page.locator('#kernels .places').count(), 0)
    assert.deepEqual([...plain.troubles, ...lone.troubles], [])
})

browserTest('messages have a histogram and a matrix', async () => {
    const { page, troubles } = await open(file('kernels', kernelsView()), { view: 'kernels' })
    const [is, ep] = [page.locator('#kernels-traffic .traffic').nth(0), page.locator('#kernels-traffic .traffic').nth(1)]
    assert.match((await is.innerText()).replace(/\s+/g, ' '), /IS, class upc, 4 ranks native:shm, pvm:default, pvm:direct messages 612 .*mean length 50 KiB .*median length 128 KiB/)
    // No bytes, then each power of two from 1 B to 128 KiB, of which two hold messages.
    assert.equal(await is.locator('.column').count(), 19)
    assert.equal(await is.locator('.column i:not(.empty)').count(), 3)
    const highest = await is.locator('.column i').evaluateAll((columns) => columns.map((column) => Number.parseFloat((column as HTMLElement).style.getPropertyValue('--high'))))
    assert.equal(highest[18], 100)
    assert.equal(highest[11], 50)
    assert.equal(await is.locator('.matrix .cells i').count(), 16)
    const tip = await is.locator('.matrix [data-pair="0 1"]').getAttribute('data-tip')
    assert.match(tip ?? '', /^0 → 1: 4.KiB in 4 messages$/)
    assert.match(await is.locator('.matrix [data-pair="1 2"]').getAttribute('data-tip') ?? '', /nothing$/)
    // Too many ranks for a matrix are said to be.
    assert.equal(await ep.locator('.matrix').count(), 0)
    assert.match(await ep.innerText(), /too many for a matrix/)
    assert.deepEqual(troubles, [])
})

browserTest('kernels without a reference show times', async () => {
    const view = kernelsView()
    for (const row of view.kernels) Object.assign(row, { of_reference: null, reference: null, mops: null, communicating_share: null, ci95_low_ns: null, ci95_high_ns: null })
    const { page, troubles } = await open(file('plain-kernels', view), { view: 'kernels' })
    assert.match(await page.locator('#kernels .panel svg').first().innerHTML(), /time →/)
    assert.equal(await page.locator('#kernels .kernel-printed-points').count(), 0)
    assert.match(await page.innerText('h1'), /2 kernels over atm-oc3c:vc=svc: 20 times/)
    assert.deepEqual(troubles, [])
})

browserTest('many series have a figure for each network', async () => {
    const { page, troubles } = await open(file('libraries', librariesView()), { view: 'latency' })
    assert.equal(await page.locator('#latency .panel').count(), 6)
    const panel = page.locator('#latency .panel[data-network="ethernet-100"]')
    const entries = await panel.locator('.legend-entry').count()
    assert.equal(entries, 6)
    // Within a network each path has a colour of its own.
    const colours = await panel.locator('.legend-entry .glyph path[fill]').evaluateAll((paths) => paths.map((path) => path.getAttribute('fill')))
    assert.equal(new Set(colours).size, entries, String(colours))
    await page.locator('#latency .choice button[data-value="one"]').click()
    assert.equal(await page.locator('#latency .panel').count(), 0)
    assert.ok((await drawn(page, 'warm', JSON.stringify(['ethernet-100', 'pvm:direct', 'block']))) > 0)
    await page.locator('#latency .choice button[data-value="each"]').click()
    await panel.locator('.legend-entry').first().click()
    assert.equal(await drawn(page, 'warm', JSON.stringify(['ethernet-100', 'tcp', 'block'])), 0)
    assert.deepEqual(troubles, [])
    // Few series are in one figure until the reader asks.
    const few = await open(sample(), { view: 'latency' })
    assert.equal(await few.page.locator('#latency .panel').count(), 0)
})

browserTest('all pairs are heat maps: hover, keys, marks, themes and print', async () => {
    const view = pairsView(8)
    const { page, troubles } = await open(file('pairs', view), { view: 'pairs', colorScheme: 'light' })
    assert.equal(await page.locator('#pairs svg.heat').count(), 3)
    const rates = page.locator('#pairs .card:has(svg.heat)').nth(1)
    assert.equal(await rates.locator('.heat-cells rect').count(), 8 * 7)
    const fill = (pair: string): Promise<string> => rates.locator(`[data-pair="${pair}"]`).evaluate((cell) => getComputedStyle(cell).fill)
    const luminance = async (pair: string): Promise<number> => ((await fill(pair)).match(/\d+/g) ?? []).reduce((sum, part) => sum + Number(part), 0)
    // What is worse is darker on paper, brighter in the dark.
    const light = [await luminance('0 5'), await luminance('0 4')]
    assert.ok((light[0] ?? 0) + 100 < (light[1] ?? 0), String(light))
    await rates.locator('[data-pair="0 5"]').hover()
    const told = await page.innerText('.tooltip')
    const value = view.heat?.maps[1]?.values[5] ?? 0
    assert.match(told, /h1 → h6/)
    assert.ok(told.includes(`${(value / 1e6).toFixed(2)}`.replace(/0+$/, '').replace(/\.$/, '')), `${told} ${value}`)
    assert.match(told, /95 % interval[\s\S]*…/)
    assert.match(told, /h6 is bad/)
    // A host's row and column, and the cell of a direction.
    assert.equal(await rates.locator('.heat-mark').count(), 3)
    await page.mouse.move(0, 0)
    await rates.locator('.plot').focus()
    await page.keyboard.press('ArrowRight')
    await page.keyboard.press('ArrowRight')
    assert.match(await rates.locator('.figure > p').innerText(), /h1 → h3/)
    await page.keyboard.press('ArrowDown')
    assert.match(await rates.locator('.figure > p').innerText(), /h2 → h3/)
    await page.click('.theme')
    const dark = [await luminance('0 5'), await luminance('0 4')]
    assert.ok((dark[0] ?? 0) > (dark[1] ?? 0) + 100, String(dark))
    await page.emulateMedia({ media: 'print' })
    await page.waitForFunction((was) => document.querySelectorAll<SVGElement>('#pairs .card:has(svg.heat)')[1]?.querySelector('[data-pair="0 5"]')?.getAttribute('fill') !== was, await rates.locator('[data-pair="0 5"]').getAttribute('fill')).catch(() => undefined)
    assert.deepEqual([await luminance('0 5'), await luminance('0 4')], light)
    assert.match(await page.innerText('h1'), /All pairs of 8 hosts/)
    assert.deepEqual(troubles, [])
})

browserTest('a sweep has panels, knees and what was granted, and its legend switches', async () => {
    const { page, troubles } = await open(file('swept', sweptView()), { view: 'throughput' })
    const titles = await page.locator('#sweep h3').allInnerTexts()
    assert.deepEqual(titles, ['ethernet-100 tcp, gro=off', 'ethernet-100 tcp, gro=on', 'ethernet-100 udp: share of the datagrams lost'])
    const count = (selector: string): Promise<number> => page.locator(`#sweep ${selector}`).count()
    assert.equal(await count('g[data-part="knee"] circle'), 6)
    assert.equal(await count('g[data-part="bound"]'), 2)
    assert.equal(await count('g[data-part="loss"]'), 4)
    assert.match(await page.locator('#sweep .line-key').first().innerText(), /copies 41.Gb\/s in memory/)
    const dot = page.locator('#sweep g[data-part="knee"] circle').first()
    await dot.scrollIntoViewIfNeeded()
    await dot.hover({ force: true })
    const told = await page.innerText('.tooltip')
    for (const words of [/asked: sndbuf\s*16KiB/, /granted: send buffer\s*32.KiB/, /the window allows\s*38.Mb\/s/, /The knee/]) assert.match(told, words)
    const button = page.locator('#sweep .legend-entry', { hasText: 'gro=off sndbuf=16KiB' }).or(page.locator('#sweep .legend-entry', { hasText: 'gro=off, sndbuf=16KiB' }))
    await button.click()
    assert.equal(await button.getAttribute('aria-pressed'), 'false')
    assert.equal(await count('g[data-part="knee"] circle'), 5)
    await button.click()
    assert.equal(await count('g[data-part="knee"] circle'), 6)
    assert.deepEqual(troubles, [])
    const without = await open(sample(), { view: 'throughput' })
    assert.equal(await without.page.$('#sweep'), null)
})

browserTest('files have their calls and stages', async () => {
    const { page, troubles } = await open(file('files', filesView()), { view: 'files' })
    // Of eight outstanding calls nothing adds up, so that a call is one piece; of one there are four.
    const pieces = (await page.locator('#files-calls .panel').first().locator('.track').all()).map((track) => track.locator('.segment').count())
    assert.deepEqual(await Promise.all(pieces), [4])
    assert.equal(await page.locator('#files-calls .panel').nth(1).locator('.segment').count(), 1)
    assert.deepEqual(await page.locator('#files-calls h3').allInnerTexts(), ['What a call takes', 'ethernet-100 nfs2:udp', 'ethernet-100 nfs3:tcp', 'ethernet-1g nfs2:udp', 'ethernet-1g nfs3:tcp'])
    assert.equal(await page.locator('#files-stages .panel').count(), 2, 'of the largest file alone')
    const stages = page.locator('#files-stages .panel').first()
    assert.deepEqual(await stages.locator('.bars-name').allInnerTexts(), ['source disk', 'socket', 'network', 'sink disk', 'together', 'measured'])
    const colours = await stages.locator('.segment').evaluateAll((all) => all.map((one) => getComputedStyle(one).backgroundColor))
    assert.equal(colours.filter((colour) => colour === colours[0]).length, 1, 'the slowest is marked')
    assert.equal(await page.locator('#files svg g[data-part="warm"]').count(), 6)
    // A run of files alone has no view of streams.
    assert.equal(await page.$('nav a[href^="#throughput"]'), null)
    assert.deepEqual(troubles, [])
})

browserTest('workloads at once are a matrix for each network', async () => {
    const view = contentionView()
    const { page, troubles } = await open(file('contention', view), { view: 'contention' })
    const cards = page.locator('#contention .contention-card')
    assert.deepEqual(await cards.locator('h3').allInnerTexts(), ['ethernet-100', 'wire'])
    assert.match(await page.innerText('.contention-answer'), /stream slows latency most, 31\.20 times[\s\S]*failed: h2 is gone/)
    const first = cards.first()
    // Three rows and five columns, of which each row leaves out itself.
    const states = await first.locator('svg rect').evaluateAll((all) => all.map((one) => one.getAttribute('data-state')))
    assert.deepEqual(['slowed', 'not_slowed', 'inconclusive', 'not_measured'].map((state) => states.filter((one) => one === state).length), [9, 1, 1, 1])
    const drawn = await first.locator('svg').evaluate((svg) => [...svg.querySelectorAll('text')].map((one) => one.textContent ?? ''))
    for (const words of ['all others', '31.20 ×', '29.95 … 32.76', 'not slowed', 'not measured', 'CPUs 1.75']) assert.ok(drawn.includes(words), `${words}: ${JSON.stringify(drawn)}`)
    // Colours say what the words do.
    const colour = (state: string): Promise<string> => first.locator(`svg rect[data-state="${state}"]`).first().evaluate((one) => getComputedStyle(one).fill)
    assert.equal(new Set(await Promise.all(['slowed', 'not_slowed', 'inconclusive', 'not_measured'].map(colour))).size, 4)
    // The CPUs' own matrix has no part of theirs beneath.
    assert.equal(await cards.nth(1).locator('svg text', { hasText: 'CPUs' }).count(), 0)
    // The same as a table, with what it was worked out of.
    const rows = first.getByRole('row')
    assert.equal(await rows.count(), 13)
    assert.equal(await first.getByRole('columnheader').count(), 9)
    assert.equal(await first.getByRole('rowheader').count(), 12)
    assert.match((await rows.nth(1).innerText()).replace(/\s+/g, ' '), /^nfs:write stream 1\.62 1\.56 … 1\.70 slowed 1\.0[12] 9\.1\S* Mb\/s 5\.6\S* Mb\/s 6$/)
    // The keys read it.
    await first.locator('.plot').focus()
    await page.keyboard.press('ArrowRight')
    assert.match(await first.locator('.unseen[aria-live]').innerText(), /nfs:write beside stream: takes 1\.62 times as long/)
    const [download] = await Promise.all([page.waitForEvent('download'), first.locator('button', { hasText: 'CSV' }).click({ force: true })])
    const lines = readFileSync(await download.path(), 'utf8').trim().split('\r\n')
    assert.equal(lines.length, 13)
    assert.match(lines[0] ?? '', /^network,workload,beside,slowdown,ci95_low,ci95_high,state,cpu_slowdown,quantity,alone,together/)
    assert.match(lines[1] ?? '', /^ethernet-100,nfs:write,stream,1\.62,/)
    await picture(page.locator('#contention'), 'contention')
    assert.deepEqual(troubles.filter((trouble) => !trouble.startsWith('request: blob:')), [])
    const without = await open(sample(), { view: 'overview' })
    assert.equal(await without.page.$('nav a[href^="#contention"]'), null)
})

browserTest('a matrix of workloads is read on a narrow window', async () => {
    const { page, troubles } = await open(file('contention', contentionView()), { view: 'contention', viewport: { width: 390, height: 800 } })
    const first = page.locator('#contention .contention-card').first()
    const drawn = await first.locator('svg').evaluate((svg) => [...svg.querySelectorAll('text')].map((one) => one.textContent ?? ''))
    assert.ok(drawn.includes('beside stream') && drawn.includes('31.20 ×') && drawn.includes('29.95 … 32.76, CPUs 1.75'), JSON.stringify(drawn))
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), 'the page is as wide as the window')
    // No text lies over another one of its line.
    const overlaps = await first.locator('svg').evaluate((svg) => {
        const boxes = [...svg.querySelectorAll('text')].map((one) => one.getBoundingClientRect())
        return boxes.flatMap((one, at) => boxes.slice(at + 1).filter((other) => one.left < other.right && other.left < one.right && one.top + 3 < other.bottom && other.top + 3 < one.bottom)).length
    })
    assert.equal(overlaps, 0)
    await picture(page.locator('#contention'), 'contention-narrow')
    assert.deepEqual(troubles, [])
})

browserTest('what differs in method or a knob is told apart everywhere', async () => {
    const { page, troubles } = await open(file('knobbed', knobbedView()), { view: 'throughput' })
    for (const word of ['zerocopy', 'sndbuf=16KiB']) {
        await go(page, 'overview')
        assert.equal(await page.locator('.key tbody tr', { hasText: word }).count(), 1)
        await go(page, 'rows')
        await page.fill('#rows input', word.toLowerCase())
        assert.ok((await page.locator('#rows tbody tr').count()) > 0)
        await go(page, 'throughput')
        assert.equal(await page.locator('#throughput .legend-entry', { hasText: word }).count(), 1)
        assert.ok((await page.locator('#cost', { hasText: word }).count()) > 0)
        const chip = page.locator('.filters .chip', { hasText: word })
        const of = (id: string): string => JSON.stringify(['ethernet-100', 'tcp', 'block', null, ...(id === 'zerocopy' ? ['zerocopy', []] : ['plain', [['sndbuf', '16KiB']]])])
        assert.ok((await drawn(page, 'stream', of(word))) > 0)
        await chip.click()
        assert.equal(await drawn(page, 'stream', of(word)), 0)
        assert.ok((await drawn(page, 'stream', JSON.stringify(['ethernet-100', 'tcp', 'block']))) > 0)
        await chip.click()
    }
    await go(page, 'rows')
    await page.fill('#rows input', '')
    const [download] = await Promise.all([page.waitForEvent('download'), page.click('#rows .button:has-text("Save CSV")')])
    const csv = readFileSync(await download.path(), 'utf8')
    assert.ok(csv.includes(',sndbuf=16KiB,') && !csv.includes('[object'), csv.slice(0, 400))
    assert.deepEqual(troubles.filter((trouble) => !trouble.startsWith('request: blob:')), [])
})

browserTest('every legend button switches its series off and on again', async () => {
    for (const [name, path] of pages()) {
        const { page, troubles } = await open(path)
        for (const figure of ['latency', 'throughput']) {
            await go(page, figure)
            // The first by the mouse; each of them by its own click, after which the figures have been drawn anew.
            const first = page.locator(`#${figure} .legend-entry`).first()
            await first.click()
            assert.equal(await first.getAttribute('aria-pressed'), 'false')
            await first.click()
            const [buttons, switched, faults] = await page.evaluate((id) => {
                const marks = (series: string): number => [...document.querySelectorAll<SVGGElement>(`#${id} .plot g[data-series]`)].filter((group) => group.dataset.series === series && group.childElementCount > 0).length
                const wrong: string[] = []
                let drawn = 0
                const all = [...document.querySelectorAll<HTMLElement>(`#${id} .legend-entry`)]
                for (const button of all) {
                    const series = button.dataset.series ?? ''
                    const before = marks(series)
                    drawn += Number(before > 0)
                    button.click()
                    const off = [button.getAttribute('aria-pressed'), marks(series)]
                    button.click()
                    const on = [button.getAttribute('aria-pressed'), marks(series)]
                    if (off.join() !== 'false,0' || on.join() !== `true,${before}`) wrong.push(`${series}: ${before}, off ${off.join()}, on ${on.join()}`)
                }
                return [all.length, drawn, wrong] as const
            }, figure)
            assert.ok(buttons > 0, `${name} ${figure}: no legend`)
            assert.deepEqual(faults, [], `${name} ${figure}`)
            assert.ok(switched > 0, `${name} ${figure}: nothing was drawn`)
        }
        assert.deepEqual(troubles, [])
    }
})

browserTest('a chip switches a whole network, cold or warm, and everything comes back', async () => {
    const { page } = await open(sample(), { view: 'latency' })
    const series = JSON.stringify(['ethernet-100', 'tcp', 'block'])
    const chip = page.locator('.filters .chip', { hasText: 'ethernet-100' })
    await chip.click()
    assert.equal(await chip.getAttribute('aria-pressed'), 'false')
    assert.equal(await drawn(page, '', series), 0)
    // What is cold is not shown until it is asked for.
    await chip.click()
    assert.deepEqual([(await drawn(page, 'warm', series)) > 0, await drawn(page, 'cold', series)], [true, 0])
    await page.locator('.filters .chip', { hasText: 'Show all' }).click()
    assert.ok((await drawn(page, 'warm', series)) > 0 && (await drawn(page, 'cold', series)) > 0)
    await page.locator('.filters .chip', { hasText: 'cold' }).click()
    assert.equal(await drawn(page, 'cold', series), 0)
    assert.ok((await drawn(page, 'warm', series)) > 0)
    const tcp = page.locator('#latency .legend-entry').first()
    await tcp.click({ modifiers: ['Shift'] })
    assert.equal(await page.locator('#latency .legend-entry[aria-pressed="true"]').count(), 1)
})

browserTest('hover shows a value, and arrow keys read a figure', async () => {
    for (const [name, path] of pages()) {
        const { page, troubles } = await open(path, { view: 'latency' })
        const dot = page.locator('#latency .plot g[data-part="warm-points"] path, #latency .plot g[data-part="warm-points"] circle').first()
        await dot.scrollIntoViewIfNeeded()
        const box = await dot.boundingBox()
        assert.ok(box)
        await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2)
        const told = await page.innerText('.tooltip')
        assert.match(told, /median latency/, name)
        assert.match(told, /\d.(ns|µs|ms)/, name)
        assert.match(told, /repetitions · samples/, name)
        await page.mouse.move(0, 0)
        assert.equal(await page.isVisible('.tooltip'), false)
        await page.focus('#latency .plot')
        await page.keyboard.press('ArrowRight')
        const first = await page.innerText('#latency .figure > p')
        await page.keyboard.press('ArrowRight')
        assert.notEqual(await page.innerText('#latency .figure > p'), first)
        assert.match(first, /median latency/)
        assert.deepEqual(troubles, [])
    }
})

browserTest('hover on the launches tells one', async () => {
    const { page } = await open(sample(), { view: 'trust' })
    const canvas = page.locator('#steadiness .u-over')
    await canvas.scrollIntoViewIfNeeded()
    const box = await canvas.boundingBox()
    assert.ok(box)
    let told = ''
    for (let at = 0; at < 40 && !told; at += 1) {
        await page.mouse.move(box.x + (box.width * (at + 0.5)) / 40, box.y + box.height / 2)
        if (await page.isVisible('.tooltip')) told = await page.innerText('.tooltip')
    }
    assert.match(told, /from the middle\s*[+−×÷]?[\d.]/)
})

browserTest('a dash says why, by pointer and by keyboard', async () => {
    const { page } = await open(sample())
    const dash = page.locator('.key .none').first()
    await dash.focus()
    assert.match(await page.innerText('.tooltip'), /\w{3}/)
    assert.match((await dash.getAttribute('aria-label')) ?? '', /^not available: /)
    await page.keyboard.press('Escape')
    assert.equal(await page.isVisible('.tooltip'), false)
})

browserTest('throughput as a part of the ceiling leaves out what has none', async () => {
    const { page } = await open(sample(), { view: 'throughput' })
    await page.click('#throughput .choice [data-value="fraction"]')
    assert.equal(await drawn(page, 'stream', JSON.stringify(['wire', 'tcp', 'block'])), 0)
    assert.ok((await drawn(page, 'stream', JSON.stringify(['ethernet-100', 'tcp', 'block']))) > 0)
    await go(page, 'latency')
    await page.click('#distributions .choice [data-value="histogram"]')
    assert.ok((await page.locator('#distributions svg').count()) >= 6)
})

browserTest('the table sorts and filters, and CSV holds every field of every row shown', async () => {
    for (const [name, path] of pages()) {
        const { page, troubles } = await open(path, { view: 'rows' })
        const nth = 1 + (await page.locator('#rows thead th').allInnerTexts()).indexOf('Median')
        const medians = async (): Promise<string[]> => page.locator(`#rows tbody tr td:nth-child(${nth})`).allInnerTexts()
        await page.selectOption('#rows select[aria-label="All quantities"]', 'latency_ns')
        const header = page.locator('#rows th .sort', { hasText: /^Median$/ })
        await header.click()
        assert.equal(await page.getAttribute('#rows th[aria-sort]', 'aria-sort'), 'ascending')
        const up = (await medians())[0]
        await header.click()
        const down = (await medians())[0]
        assert.notEqual(up, down, name)
        await page.fill('#rows input', 'udp cold')
        const paths = await page.locator('#rows tbody tr td:nth-child(2)').allInnerTexts()
        assert.ok(paths.every((one) => one === 'udp'), name)
        const said = await page.innerText('#rows .rows > .axis-note')
        const kept = Number(/^(\d+) of/.exec(said.replace(/\u202f/g, ''))?.[1])
        const [download] = await Promise.all([page.waitForEvent('download'), page.click('#rows .button:has-text("Save CSV")')])
        const csv = readFileSync(await download.path(), 'utf8').trim().split('\r\n')
        assert.equal(csv.length, kept + 1, name)
        assert.ok(csv[0]?.startsWith('probe,') && csv[0].includes(',ci95_low,'), csv[0])
        assert.deepEqual(troubles.filter((trouble) => !trouble.startsWith('request: blob:')), [])
    }
})

browserTest('a load is drawn apart, and what it adds is in a table', async () => {
    const { page, troubles } = await open(file('loaded', loadedView()), { view: 'latency' })
    const id = (load: string | null): string => JSON.stringify(['ethernet-100', 'tcp', 'block', ...(load === null ? [] : [load])])
    // The corners of a curve: as many as its own rows.
    const corners = (load: string | null): Promise<number> => page.evaluate((series) => {
        const group = [...document.querySelectorAll<SVGGElement>('#latency .plot g[data-part="warm"]')].filter((one) => one.dataset.series === series)
        return group.flatMap((one) => [...one.querySelectorAll('path')]).reduce((sum, path) => sum + (path.getAttribute('d') ?? '').split(/[ML]/).length - 1, 0)
    }, id(load))
    const sizes = loadedView().results.filter((row) => row.network === 'ethernet-100' && row.path === 'tcp' && row.quantity === 'latency_ns' && row.phase === 'warm' && row.load === null).length
    assert.deepEqual([await corners(null), await corners('0.6'), await corners('0.9')], [sizes, sizes, sizes])
    assert.equal(await drawn(page, 'bound', id('0.9')), 0)
    assert.match(await page.innerText('#latency .legend'), /tcp, load 0\.9/)
    const chip = page.locator('.filters .chip', { hasText: /^0\.9$/ })
    await chip.click()
    assert.deepEqual([await corners(null), await corners('0.6'), await corners('0.9')], [sizes, sizes, 0])
    await chip.click()
    await go(page, 'load')
    const said = await page.locator('#load table', { hasText: 'ethernet-100 udp, load 0.9' }).locator('tbody tr').allInnerTexts()
    assert.ok(said.some((row) => /tcp, load 0\.6.*within/s.test(row)) && said.some((row) => /udp, load 0\.6.*outside/s.test(row)), said.join('\n'))
    await go(page, 'rows')
    const loads = await page.locator('#rows thead th', { hasText: /^Load$/ }).count()
    assert.equal(loads, 1)
    assert.deepEqual(troubles, [])
})
