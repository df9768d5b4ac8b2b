// What the page concludes from a run, without a browser.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Model } from '../src/model'
import { unpacked } from '../src/read'
import { scale } from '../src/heatmap'
import { kernelsView, knobbedView, librariesView, loadedView, packed, pairsView, sampleView } from './sample'

test('the sample is the same every time', () => {
    assert.equal(JSON.stringify(sampleView()), JSON.stringify(sampleView()))
})

test('a series keeps its colour, and the floor is grey beside other networks', () => {
    const model = new Model(sampleView())
    const colours = model.networks.map((network) => model.colour(network))
    assert.equal(colours[0], 'var(--floor)')
    assert.equal(new Set(colours).size, model.networks.length)
    for (const series of model.series) assert.equal(series.colour, model.colour(series.network))
    assert.notEqual(model.series[0]?.symbol, model.series[1]?.symbol)
    const alone = sampleView()
    alone.results = alone.results.filter((row) => row.network === 'loopback')
    alone.networks = alone.networks.slice(0, 1)
    assert.equal(new Model(alone).colour('loopback'), 'var(--network-0)')
})

test('the verdict names who falls short', () => {
    const view = sampleView()
    const verdict = new Model(view).verdict()
    assert.match(verdict, /^TCP reaches 95\.8.% or more of the ceiling on 3 of 4 networks; wan-100m-20ms stops at 6\d\.?\d?.%\.$/)
    view.results = view.results.filter((row) => row.network === 'loopback')
    view.networks = view.networks.slice(0, 1)
    assert.match(new Model(view).verdict(), /^TCP moves 21.*Gb\/s and takes 5.*µs one way over loopback; no ceiling is known for it\.$/)
    view.results = []
    assert.equal(new Model(view).verdict(), 'Nothing was measured to the end.')
    const twice = sampleView()
    twice.results.push(...twice.results.filter((row) => row.network === 'wan-100m-20ms').map((row) => ({ ...row, wait: 'poll', cell: `${row.cell}p`, p50: (row.p50 ?? 0) * 1.6 })))
    assert.match(new Model(twice).verdict(), /on all 4 networks that have one\.$/)
})

test('a load is a series of its own', () => {
    const [idle, model] = [new Model(sampleView()), new Model(loadedView())]
    const own = model.series.filter((series) => series.network === 'ethernet-100')
    assert.deepEqual(own.map((series) => series.label), ['ethernet-100 tcp', 'ethernet-100 tcp, load 0.6', 'ethernet-100 tcp, load 0.9', 'ethernet-100 udp', 'ethernet-100 udp, load 0.6', 'ethernet-100 udp, load 0.9'])
    const tcp = own.filter((series) => series.path === 'tcp')
    assert.equal(new Set(tcp.map((series) => series.colour)).size, 3)
    for (const series of own) {
        const rows = model.rows({ series })
        assert.ok(rows.length > 0 && rows.every((row) => row.load === series.load && model.of(row) === series), series.label)
        const bounded = [model.streamCeiling(series), model.fraction(series), model.fit(series) ?? null].some((one) => one !== null) || model.ceilings(series, 'latency_ns').length > 0
        assert.equal(bounded, series.load === null, series.label)
    }
    // What idle networks do is told as without the loads.
    assert.equal(model.verdict(), idle.verdict())
    for (const series of idle.series) assert.deepEqual(model.rows({ series: model.of({ ...series }) }), idle.rows({ series }), series.label)
})

test('method and knobs are series of their own', () => {
    const [usual, model] = [new Model(sampleView()), new Model(knobbedView())]
    const own = model.series.filter((series) => series.network === 'ethernet-100' && series.path === 'tcp')
    assert.deepEqual(own.map((series) => series.label), ['ethernet-100 tcp', 'ethernet-100 tcp, sndbuf=16KiB', 'ethernet-100 tcp, zerocopy'])
    assert.equal(new Set(own.map((series) => series.colour)).size, 3)
    const streams = own.map((series) => model.rows({ series, mode: 'stream', quantity: 'throughput_bps' }))
    assert.deepEqual(streams.map((rows) => rows.length), [1, 1, 1])
    const [base, knob, method] = streams.map((rows) => rows[0]?.p50 ?? 0)
    assert.ok(base && knob === base / 4 && method === base / 2)
    // The usual series have what they had.
    for (const series of usual.series) assert.deepEqual(model.rows({ series: model.of({ ...series }) }), usual.rows({ series }), series.label)
    assert.equal(model.verdict(), usual.verdict())
})

test('libraries are told in the headline where no stream is', () => {
    const view = librariesView()
    assert.equal(new Model(view).verdict(), new Model(sampleView()).verdict())
    view.results = view.results.filter((row) => row.quantity === 'latency_ns')
    const said = new Model(view).verdict()
    assert.match(said, /^Over 4 networks libraries add to a small message: mpich:tcp .*pvm:default .*\.$/)
    assert.equal(new Model(view).crowded, true)
})

test('flows of a pattern are of no series, and the verdict is of all pairs', () => {
    const model = new Model(pairsView(8))
    assert.deepEqual(model.series, [])
    assert.match(model.verdict(), /^All pairs of 8 hosts on ethernet-100: 9\d\.?\d?.Mb\/s a stream and 6\d\.?\d?.µs one way in the median; 2 stand out\.$/)
})

test('a heat map shades what is worse', () => {
    const noise = scale([100, 101, 102, null], true)
    assert.ok(noise.part(102) - noise.part(100) < 0.06, 'noise stays pale')
    const rates = scale([90, 91, 92, 30], false)
    assert.equal(rates.part(30), 1)
    assert.ok(rates.part(92) < 0.25 && rates.best > rates.worst)
    const far = scale([1, 2, 4000], true)
    assert.ok(far.part(2) > 0.05, 'what is not the worst is told apart')
    assert.equal(scale([], true).part(1) >= 0, true)
})

test('a run of loads alone has a verdict', () => {
    const view = loadedView()
    view.results = view.results.filter((row) => row.load === '0.9')
    assert.match(new Model(view).verdict(), /over ethernet-100 under load 0\.9; no ceiling is known for it\.$/)
})

test('a cell that is late in one launch makes its series late', () => {
    const model = new Model(sampleView())
    const status = (network: string): string | undefined => {
        const series = model.series.find((one) => one.network === network && one.path === 'tcp')
        return series && model.fidelity(series)?.status
    }
    assert.equal(status('ethernet-1g'), 'failed')
    assert.equal(status('ethernet-100'), 'passed')
    assert.equal(status('loopback'), undefined)
})

test('packed rows are the same rows, in a third of the bytes', () => {
    const view = sampleView()
    const { results } = packed(view)
    assert.ok(!Array.isArray(results))
    assert.deepEqual(unpacked(results), view.results)
    assert.ok(JSON.stringify(results).length * 3 < JSON.stringify(view.results).length)
    assert.deepEqual(unpacked({ length: 0, columns: [] }), [])
})

test('kernels are told in the headline, and are of no series', () => {
    const view = kernelsView()
    const model = new Model(view)
    assert.deepEqual([model.series.length, model.paths.length], [0, 0])
    assert.match(model.verdict(), /^2 kernels over atm-oc3c:vc=svc: idle, ranks communicate for 1.% to 75.% of the time\.$/)
    view.kernels = view.kernels.filter((row) => row.hosts === 1 && row.kernel === 'is')
    assert.match(new Model(view).verdict(), /^The kernel IS on one host: idle, ranks communicate for 75.% of the time\.$/)
    // Beside other measurements these are told.
    const both = { ...sampleView(), kernels: view.kernels }
    both.results.push(...view.results)
    assert.equal(new Model(both).verdict(), new Model(sampleView()).verdict())
})
