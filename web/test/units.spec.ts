// Closed forms of the page's numbers, ticks and CSV.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decadeTicks, linearTicks, sizeTicks } from '../src/axes'
import { count, duration, perByte, rate, share, significant, size, time, value } from '../src/units'

const plain = (text: string): string => text.replace(/\u202f/g, ' ')

test('times take the unit that fits', () => {
    const cases: [number, string][] = [[0.31, '310 ps'], [1, '1 ns'], [999, '999 ns'], [999.6, '1 µs'], [23640, '23.6 µs'], [10011800, '10 ms'], [21e6, '21 ms'], [1e9, '1 s'], [61e9, '61 s']]
    for (const [ns, text] of cases) assert.equal(plain(time(ns)), text)
})

test('rates are decimal', () => {
    const cases: [number, string][] = [[0, '0 b/s'], [999, '999 b/s'], [94148244, '94.15 Mb/s'], [155520000, '155.5 Mb/s'], [21.36e9, '21.36 Gb/s'], [999.99e6, '1 Gb/s']]
    for (const [bps, text] of cases) assert.equal(plain(rate(bps)), text)
})

test('sizes are binary, and exact where they are small', () => {
    const cases: [number, string][] = [[1, '1 B'], [1448, '1448 B'], [1024, '1 KiB'], [9128, '9128 B'], [61440, '60 KiB'], [65507, '64 KiB'], [252000, '246 KiB'], [4194304, '4 MiB']]
    for (const [bytes, text] of cases) assert.equal(plain(size(bytes)), text)
})

test('shares never hide a loss', () => {
    const cases: [number, string][] = [[0, '0 %'], [0.000001, '<0.001 %'.replace('<', '< ')], [0.617, '61.7 %'], [1, '100 %'], [0.99994, '99.99 %']]
    for (const [part, text] of cases) assert.equal(plain(share(part)), text)
})

test('other figures', () => {
    assert.equal(plain(perByte(1.234)), '1.23 ns/B')
    assert.equal(plain(perByte(0.31)), '310 ps/B')
    assert.equal(plain(count(1234567)), '1 234 567')
    assert.equal(plain(duration(178e9)), '2 min 58 s')
    assert.equal(significant(99.96), '100')
    assert.equal(significant(0), '0')
    assert.equal(plain(value('throughput_bps', 1e6)), '1 Mb/s')
    assert.equal(plain(value('retransmits', 14)), '14')
})

test('ticks stay within their range and are few', () => {
    assert.deepEqual(decadeTicks(5000, 2e7), [10000, 100000, 1000000, 10000000])
    assert.deepEqual(decadeTicks(90, 600), [100, 200, 500])
    assert.deepEqual(decadeTicks(0, 10), [])
    assert.deepEqual(linearTicks(1.06), [0, 0.25, 0.5, 0.75, 1])
    for (const most of [3, 5, 8, 20]) {
        const ticks = sizeTicks(1, 2 ** 22, most)
        assert.ok(ticks.length <= most + 1 && ticks.length >= 2, `${most}: ${ticks}`)
        assert.ok(ticks.every((tick) => tick >= 1 && tick <= 2 ** 22))
    }
})
