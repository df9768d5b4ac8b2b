// Quantities as people read them.
//
// Units:   times in ns, rates in bits a second with decimal prefixes, sizes in bytes with binary ones. At most four digits;
//          rounding is to nearest.
// Checked: test/units.spec.ts.
import type { Quantity } from './view'

/** What stands for a value that is not there. */
export const NONE = '–'
const NARROW = '\u202f'

/** A number with `digits` significant digits at most, and no exponent. */
export function significant(value: number, digits = 3): string {
    if (value === 0) return '0'
    const whole = Math.floor(Math.log10(Math.abs(value))) + 1
    // Rounding may carry into the next power of ten.
    const rounded = Number(value.toPrecision(Math.max(digits, whole)))
    const places = Math.min(12, Math.max(0, digits - (Math.floor(Math.log10(Math.abs(rounded))) + 1)))
    return rounded.toFixed(places).replace(/(\.\d*?)0+$/, '$1').replace(/\.$/, '')
}

function scaled(value: number, factor: number, units: readonly string[], first: number, digits: number): string {
    let at = first
    let scale = value
    while (at + 1 < units.length && Math.abs(Number(scale.toPrecision(digits))) >= factor) {
        scale /= factor
        at += 1
    }
    while (at > 0 && scale !== 0 && Math.abs(Number(scale.toPrecision(digits))) < 1) {
        scale *= factor
        at -= 1
    }
    return `${significant(scale, digits)}${NARROW}${units[at]}`
}

/** Nanoseconds. */
export const time = (ns: number, digits = 3): string => scaled(ns, 1000, ['ps', 'ns', 'µs', 'ms', 's'], 1, digits)

/** Bits a second. */
export const rate = (bps: number, digits = 4): string => scaled(bps, 1000, ['b/s', 'kb/s', 'Mb/s', 'Gb/s', 'Tb/s'], 0, digits)

/** Bytes of a message: exact below 10 KiB where no binary unit is. */
export function size(bytes: number): string {
    for (const [unit, name] of [[1 << 30, 'GiB'], [1 << 20, 'MiB'], [1 << 10, 'KiB']] as const) {
        if (bytes >= unit && bytes % unit === 0) return `${bytes / unit}${NARROW}${name}`
    }
    return bytes < 10240 ? `${Math.round(bytes)}${NARROW}B` : scaled(bytes, 1024, ['B', 'KiB', 'MiB', 'GiB'], 0, 3)
}

/** Memory, in binary units. */
export const memory = (bytes: number): string => scaled(bytes, 1024, ['B', 'KiB', 'MiB', 'GiB', 'TiB'], 0, 3)

/** A part of one. A share that is not zero is never shown as 0 %. */
export function share(part: number): string {
    const percent = part * 100
    if (percent !== 0 && Math.abs(percent) < 0.001) return `<${NARROW}0.001${NARROW}%`
    const digits = Math.abs(percent) >= 99.95 && Math.abs(percent) < 100 ? 4 : 3
    return `${significant(percent, digits)}${NARROW}%`
}

/** CPU time for a byte. */
export const perByte = (ns: number): string => `${scaled(ns, 1000, ['fs', 'ps', 'ns', 'µs', 'ms'], 2, 3)}/B`

/** A whole number with thin spaces between thousands. */
export const count = (value: number): string => String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, NARROW)

/** How many times something else. */
export const times = (value: number): string => `${significant(value, 3)}${NARROW}×`

/** A value in the unit of its quantity. */
export function value(quantity: Quantity, number: number): string {
    if (quantity.endsWith('_ns_per_byte')) return perByte(number)
    if (quantity.endsWith('_ns')) return time(number)
    if (quantity.endsWith('_bps')) return rate(number)
    if (quantity.endsWith('_share')) return share(number)
    if (quantity === 'mop_per_s') return `${significant(number, 4)}${NARROW}Mop/s`
    if (quantity === 'messages') return count(number)
    if (quantity.startsWith('message_bytes_')) return size(number)
    return significant(number, 4)
}

const NAMES: Record<Quantity, string> = {
    latency_ns: 'latency',
    rtt_ns: 'round trip',
    startup_ns: 'start-up',
    exchange_ns: 'exchange step',
    throughput_bps: 'throughput',
    cpu_src_ns_per_byte: 'CPU per byte, sender',
    cpu_dst_ns_per_byte: 'CPU per byte, receiver',
    lost_share: 'lost',
    reordered_share: 'reordered',
    duplicated_share: 'duplicated',
    busy_share: 'busy',
    rwnd_limited_share: 'limited by receive window',
    sndbuf_limited_share: 'limited by send buffer',
    retransmits: 'retransmits',
    one_way_ns: 'one way',
    send_call_ns: 'send call',
    queue_ns: 'queue',
    wire_ns: 'wire',
    nic_trip_ns: 'card to card and back',
    wake_ns: 'wake-up',
    receive_ns: 'receive call',
    ack_ns: 'acknowledged',
    response_ns: 'response, from the time it was due',
    service_ns: 'service, from the send',
    collective_ns: 'collective call',
    entry_late_ns: 'collective call, entered late',
    rate_per_s: 'messages per second',
    late_share: 'sent late',
    kernel_ns: 'kernel, longest rank',
    mop_per_s: 'million operations per second',
    communicating_share: 'communicating',
    messages: 'messages',
    message_bytes_mean: 'mean message',
    message_bytes_median: 'median message',
    replay_ns: 'messages of a program, longest rank',
    message_bytes: 'bytes of all messages',
    network_lost_share: 'lost in the network',
    checks: 'calls and messages checked',
    program_ns: 'program, slowest rank',
}

/** A quantity's name in words. */
export const quantityName = (quantity: Quantity): string => NAMES[quantity] ?? quantity

/** A time of day, local, with its zone: `2026-11-21 05:18:38 UTC`. */
export function moment(unixNs: number): string {
    const date = new Date(unixNs / 1e6)
    return Number.isNaN(date.getTime()) ? NONE : date.toISOString().slice(0, 19).replace('T', ' ') + ' UTC'
}

/** A duration in minutes and seconds. */
export function duration(ns: number): string {
    const seconds = Math.round(ns / 1e9)
    if (seconds < 60) return time(ns)
    const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60]
    const words = ['h', 'min', 's'].map((unit, at) => (parts[at] ? `${parts[at]}${NARROW}${unit}` : ''))
    return words.filter(Boolean).join(' ')
}
