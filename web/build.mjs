// Bundles the page into one file, dist/page.html; `sample` also writes dist/sample.html, `tests` also bundles the tests.
//
// Model:   the script and the styles stand inline in page.html; the content security policy allows that script by its
//          hash and nothing else, so a string in the data can neither run nor load anything. The crate `report`
//          replaces what is between the two view markers, the markers included or not, with the data of a run.
// Checked: `the page has its markers once`, `no request leaves the page`.
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { build } from 'esbuild'

const here = dirname(fileURLToPath(import.meta.url))
const dist = join(here, 'dist')
const MARKERS = ['<!--view-begin-->', '<!--view-end-->']

async function bundled(entry, options) {
    const { outputFiles, metafile } = await build({
        metafile: true,
        entryPoints: [join(here, entry)],
        bundle: true,
        write: false,
        minify: true,
        charset: 'utf8',
        legalComments: 'none',
        logLevel: 'warning',
        outdir: dist,
        ...options,
    })
    const texts = Object.fromEntries(outputFiles.map((file) => [file.path.split('.').pop(), file.text]))
    return { ...texts, inputs: Object.keys(metafile.inputs) }
}

// The licences of the packages in the bundle, which ask to go with every copy; a text that several share stands once.
function licences(inputs) {
    const packages = [...new Set(inputs.map((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1]).filter(Boolean))].sort()
    const texts = new Map()
    for (const name of packages) {
        const folder = join(here, 'node_modules', name)
        const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry))
        if (!file) throw new Error(`${name} is in the bundle and has no licence file`)
        const text = readFileSync(join(folder, file), 'utf8').trim().replace(/-{2,}/g, (dashes) => '\u2010'.repeat(dashes.length))
        texts.set(text, [...(texts.get(text) ?? []), name])
    }
    return [...texts].map(([text, names]) => `${names.join(', ')}:\n${text}`).join('\n\n')
}

async function page() {
    const { js, css, inputs } = await bundled('src/main.ts', { format: 'iife', target: ['es2020', 'chrome100', 'firefox102', 'safari15'] })
    if (/<\/script|<!--/i.test(js)) throw new Error('the bundled script holds a string that would end or comment out its element')
    const hash = createHash('sha256').update(js).digest('base64')
    // Replacement by a function: `$` in the bundle is not a pattern.
    const html = readFileSync(join(here, 'src/page.html'), 'utf8')
        .replace('SCRIPT_HASH', () => `sha256-${hash}`)
        .replace('/*STYLES*/', () => css.trim())
        .replace('/*SCRIPT*/', () => js)
        .replace('LICENCES', () => licences(inputs))
    for (const marker of MARKERS) {
        if (html.split(marker).length !== 2) throw new Error(`${marker} must be in the page exactly once`)
    }
    mkdirSync(dist, { recursive: true })
    // An unchanged page keeps its time: cargo embeds it, and would build again.
    const path = join(dist, 'page.html')
    if (!existsSync(path) || readFileSync(path, 'utf8') !== html) writeFileSync(path, html)
    console.log(`web/dist/page.html: ${Math.ceil(Buffer.byteLength(html) / 1024)} KiB`)
    return html
}

async function tests() {
    const folder = join(dist, 'test')
    rmSync(folder, { recursive: true, force: true })
    mkdirSync(folder, { recursive: true })
    const names = readdirSync(join(here, 'test')).filter((name) => name.endsWith('.ts'))
    for (const name of names) {
        const { js } = await bundled(`test/${name}`, { platform: 'node', format: 'esm', target: 'node18', minify: false, packages: 'external' })
        writeFileSync(join(folder, name.replace(/\.ts$/, '.mjs')), js)
    }
}

async function sample(html) {
    await tests()
    const { sampleView, embed } = await import(pathToFileURL(join(dist, 'test/sample.mjs')).href)
    writeFileSync(join(dist, 'sample.html'), embed(html, sampleView()))
    console.log('web/dist/sample.html: the page with a made-up run')
}

const html = await page()
if (process.argv[2] === 'tests') await tests()
if (process.argv[2] === 'sample') await sample(html)
