// The report page: reads the run that stands in it and draws it.
import './page.css'
import { Context } from './context'
import { h } from './dom'
import { filters } from './legend'
import { Model } from './model'
import { held } from './read'
import { anatomy } from './sections/anatomy'
import { coldstart } from './sections/coldstart'
import { conditions } from './sections/conditions'
import { cost } from './sections/cost'
import { distributions } from './sections/distributions'
import { findings } from './sections/findings'
import { head } from './sections/head'
import { heat } from './sections/heat'
import { kernels } from './sections/kernels'
import { ladder } from './sections/ladder'
import { latency } from './sections/latency'
import { overhead } from './sections/overhead'
import { rows } from './sections/rows'
import { sweep } from './sections/sweep'
import { steadiness } from './sections/steadiness'
import { throughput } from './sections/throughput'
import { Selection } from './selection'
import { themeButton } from './theme'
import { Tooltip } from './tooltip'
import type { View } from './view'

const SHORT: Record<string, string> = {
    findings: 'Findings', pairs: 'All pairs', kernels: 'Kernels', sweep: 'Sweep', latency: 'Latency', ladder: 'Libraries', anatomy: 'Anatomy', throughput: 'Throughput', coldstart: 'Cold start', overhead: 'Overhead', distributions: 'Distributions',
    steadiness: 'Steadiness', cost: 'Cost', conditions: 'Conditions', rows: 'Rows',
}
const page = document.getElementById('page') ?? document.body

function navigation(sections: HTMLElement[], changed: () => void): HTMLElement {
    const links = sections.map((section) => h('a', { href: `#${section.id}` }, SHORT[section.id] ?? section.id))
    // The link of the section at hand is marked while the page is scrolled.
    const seen = new IntersectionObserver((entries) => {
        for (const entry of entries) {
            const link = links[sections.indexOf(entry.target as HTMLElement)]
            if (entry.isIntersecting) link?.setAttribute('aria-current', 'true')
            else link?.removeAttribute('aria-current')
        }
    }, { rootMargin: '-25% 0px -70% 0px' })
    sections.forEach((section) => seen.observe(section))
    return h('nav', { class: 'top', 'aria-label': 'Sections' },
        h('a', { class: 'brand', href: '#top' }, 'sonde'), h('div', { class: 'links' }, links), themeButton(changed))
}

function show(view: View): void {
    const model = new Model(view)
    const selection = new Selection(model.series)
    const context = new Context(model, selection, new Tooltip())
    document.title = `sonde: ${model.networks.join(', ') || view.run.id}`
    const plots = [heat, kernels, sweep, latency, ladder, anatomy, throughput, coldstart, overhead, distributions, steadiness, cost].map((section) => section(context)).filter((section) => section !== null)
    const found = findings(context)
    const last = [conditions(context), rows(context)]
    page.replaceChildren(
        h('a', { class: 'skip', href: '#findings' }, 'Skip to the findings'),
        navigation([found, ...plots, ...last], () => context.redraw()),
        h('main', {}, head(context), found, plots.length ? h('div', { class: 'figures' }, model.series.length ? filters(model, selection) : null, plots) : null, last),
        h('footer', { class: 'foot' }, `sonde ${view.run.version} · run ${view.run.id} · seed ${view.run.seed}`))
    context.redraw()
}

const found = held()
if ('view' in found) show(found.view)
else page.replaceChildren(h('main', { class: 'without' }, h('p', { class: 'brand' }, 'sonde'), h('h1', {}, found.message), h('p', {}, found.detail)))
