// What the page concludes from a run, without a browser.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Model } from '../src/model'
import { unpacked } from '../src/read'
import { loadedView, packed, sampleView } from './sample'

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
    assert.deepEqual(unpacked({ columns: [] }), [])
})
