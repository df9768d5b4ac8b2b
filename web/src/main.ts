// The report page: reads the run that stands in it and draws it, a view at a time.
import './page.css'
import { Context } from './context'
import { h } from './dom'
import { filters } from './legend'
import { Model } from './model'
import { showOther } from './pages'
import { live } from './pages/served'
import { held } from './read'
import { Route, link } from './route'
import { head } from './sections/head'
import { Selection } from './selection'
import { themeButton } from './theme'
import { Tooltip } from './tooltip'
import type { View } from './view'
import { VIEWS, type ViewSpec } from './views'

const page = document.getElementById('page') ?? document.body

function show(view: View): void {
    const model = new Model(view)
    const route = new Route()
    const phases = new Set(model.rows({ quantity: 'latency_ns' }).map((row) => row.phase))
    const selection = new Selection(model.series, phases.has('warm'))
    document.title = `sonde: ${model.networks.join(', ') || view.run.id}`
    const views = VIEWS.filter((spec) => spec.has(model))
    const context = new Context(model, selection, new Tooltip(), route, new Set(views.map(({ id }) => id)))
    const places = new Map(views.map((spec) => [spec, h('div', { class: 'view', 'data-view': spec.id, hidden: true })]))
    const links = new Map(views.map((spec) => [spec, h('a', { href: link(spec.id), title: spec.question }, spec.name)]))
    const bar = model.series.length ? filters(model, selection) : null
    const built = new Set<ViewSpec>()
    const build = (spec: ViewSpec): void => {
        if (built.has(spec)) return
        built.add(spec)
        const sections = spec.sections.map(({ make }) => make(context)).filter((section) => section !== null)
        places.get(spec)?.append(...(sections.length ? sections : [h('p', { class: 'nothing' }, 'Nothing was measured.')]))
    }
    const open = (): void => {
        const spec = views.find(({ id }) => id === route.view) ?? views.find(({ sections }) => sections.some(({ id }) => id === route.view)) ?? views[0]
        if (!spec) return
        build(spec)
        for (const [one, place] of places) place.hidden = one !== spec
        if (bar && spec.isFiltered) places.get(spec)?.prepend(bar)
        document.body.dataset.view = spec.id
        for (const [one, anchor] of links) {
            if (one === spec) anchor.setAttribute('aria-current', 'page')
            else anchor.removeAttribute('aria-current')
        }
        // A choice of findings or of rows is none of series. One of series draws by itself.
        if (spec.isFiltered) selection.restore(route.state)
        else context.redraw()
        // The bar follows on a narrow window; a link to a section leads to it, one to a view to its top.
        links.get(spec)?.scrollIntoView({ block: 'nearest', inline: 'center' })
        if (route.view === spec.id || route.view === '') window.scrollTo({ top: 0, behavior: 'instant' })
        else document.getElementById(route.view)?.scrollIntoView({ behavior: 'instant' })
    }
    // On paper all views stand one after the other.
    const onPaper = (): void => {
        views.forEach(build)
        document.documentElement.classList.add('whole')
        context.redraw()
    }
    const onScreen = (): void => document.documentElement.classList.remove('whole')
    window.addEventListener('beforeprint', onPaper)
    window.addEventListener('afterprint', onScreen)
    const main = h('main', { tabindex: -1 }, head(context), [...places.values()])
    page.replaceChildren(
        h('a', { class: 'skip', href: link('overview'), onclick: (event) => {
            event.preventDefault()
            main.focus()
        } }, 'Skip to the report'),
        h('nav', { class: 'top', 'aria-label': 'Views' },
            h('a', { class: 'brand', href: link('overview') }, 'sonde'), h('div', { class: 'links' }, [...links.values()]),
            themeButton(() => (window.matchMedia('print').matches ? onPaper() : (onScreen(), context.redraw())))),
        main,
        h('footer', { class: 'foot' }, `sonde ${view.run.version} · run ${view.run.id} · seed ${view.run.seed}`))
    selection.onChange(() => {
        const told = new Map(selection.state())
        route.keep(['hide', 'only', 'cold', 'warm', 'net', 'path'].map((name) => [name, told.get(name) ?? null]))
        // The choice goes along to the other views.
        for (const [spec, anchor] of links) if (spec.isFiltered) anchor.setAttribute('href', link(spec.id, selection.state()))
    })
    route.onFollowed(open)
    open()
}

void held().then((found) => {
    if ('view' in found) {
        show(found.view)
        live()
    } else if ('other' in found) showOther(page, found.other)
    else page.replaceChildren(h('main', { class: 'without' }, h('p', { class: 'brand' }, 'sonde'), h('h1', {}, found.message), h('p', {}, found.detail)))
})
