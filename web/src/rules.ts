// Which view has the figures that a finding is about.
//
// Checked: `each rule leads to a view`.

/** The view that has the figures of a finding; that of all rows where no figure has them. */
export function viewOfRule(rule: string): string {
    const found = RULES.find(([rules]) => rules.test(rule))
    return found?.[1] ?? 'rows'
}

const RULES: [RegExp, string][] = [
    [/^kernel-(?!bypass)/, 'kernels'],
    [/^(host-(?!exhausted|set-apart)|direction-|link-|pair-apart|unsteady|fabric)/, 'pairs'],
    [/^(cold-start|idle-cost)$/, 'coldstart'],
    [/^(library-|layer-cost|curves-cross|kernel-bypass)/, 'libraries'],
    [/^(queueing|load-)/, 'load'],
    [/^(disturbed|stolen-time|drift|host-exhausted|interval-not-reached|few-launches|launches-missing|strangers)$/, 'trust'],
    [/^(lost-at-receive-buffer|daemons-short|(disk|service|transfer-size|window|stage)-bound)$/, 'files'],
    [/^(outliers|mtu-crossing)$/, 'latency'],
    [/^(window-|sndbuf-limited|slow-reader|cpu-bound|datagram-loss|reordering|retransmits|below-expectation|near-ceiling|small-frames|start-stop|sweep-knee|udp-loss-limit|above-ceiling)/, 'throughput'],
    [/^(host-set-apart|mtu-apart)$/, 'conditions'],
]
