import { chromium } from 'playwright-core'
const [,, path, out, width, scheme, ...ids] = process.argv
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] })
const page = await (await browser.newContext({ viewport: { width: Number(width), height: 900 }, colorScheme: scheme })).newPage()
page.on('pageerror', (e) => console.log('ERR', e.message))
await page.goto('file://' + path)
await page.waitForTimeout(800)
for (const id of ids) await page.locator('#' + id).screenshot({ path: `${out}-${id}-${width}-${scheme}.png` })
await browser.close()
