// How many figures of a run of `sonde assess` are sound, and how many of these are wrong: more than 3 % (a time: or 5 us, whichever is more)
// outside of what three quiet runs of the same command gave, from the lowest end of their intervals to the highest.
//
// Usage: node bench-ways.mjs QUIET QUIET QUIET RUN, documents of `sonde assess --json`; lines of a name and a number.
import { readFileSync } from 'node:fs'

/** Networks of up to 155 Mb/s among those that `sonde assess` takes. */
const SLOW = /^(ethernet-10\b|ethernet-100\b|fddi|atm-(ds|e|25|taxi|oc3c)|wan-)/

/** The measured figures of a document, by cell, quantity, phase and step. */
function figures(path) {
  const rows = JSON.parse(readFileSync(path, 'utf8')).results
  const measured = rows.filter((row) => row.status === 'measured' && row.p50 !== null)
  return new Map(measured.map((row) => [[row.cell, row.quantity, row.phase, row.step].join(' '), row]))
}

/** Before rows had a state, a verdict said whether to trust them. */
function isSound(row) {
  if (row.state !== undefined) return row.state === 'sound'
  return row.verdict === null || row.verdict.status === 'passed'
}

function isTime(row) {
  return row.quantity.endsWith('_ns')
}

/** The median of the samples that met no disturbance, where that was seen. */
function point(row) {
  return row.undisturbed_p50 ?? row.p50
}

function isWrong(row, quiet) {
  const low = Math.min(...quiet.map((one) => one.ci95_low ?? one.p50))
  const high = Math.max(...quiet.map((one) => one.ci95_high ?? one.p50))
  const margin = (end) => Math.max(0.03 * end, isTime(row) ? 5000 : 0)
  return point(row) < low - margin(low) || point(row) > high + margin(high)
}

const [run, ...quiet] = process.argv.slice(2).map(figures).reverse()
let wrong = 0
let sound = 0
const share = { stream: [0, 0], latency: [0, 0] }
for (const [name, row] of run) {
  const beside = quiet.map((one) => one.get(name)).filter((one) => one !== undefined)
  if (isSound(row)) {
    sound += 1
    if (beside.length > 0 && isWrong(row, beside)) {
      wrong += 1
      console.error(`wrong: ${row.network} ${row.path} ${row.quantity} of ${row.size_bytes} B: ${point(row)}, quiet ${beside.map((one) => one.p50)}`)
    }
  }
  // What has one repetition by plan has no interval anywhere.
  const isMain = SLOW.test(row.network) && row.phase === 'warm' && row.step === null && row.launches >= 6
  const kind = isMain && { throughput: row.mode, latency: 'latency' }[row.probe]
  const isOfKind = { stream: 'throughput_bps', latency: 'latency_ns' }[kind] === row.quantity
  if (isOfKind) {
    share[kind][0] += isSound(row) ? 1 : 0
    share[kind][1] += 1
  }
}
console.log(`figures ${run.size}`)
console.log(`sound ${sound}`)
console.log(`wrong ${wrong}`)
for (const [kind, [of, all]] of Object.entries(share)) console.log(`sound_${kind} ${all === 0 ? 0 : of / all}`)
