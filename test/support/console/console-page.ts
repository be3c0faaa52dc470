import { mkdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Page } from 'playwright-core'
import type { LocalStart } from '../services/local-start.ts'

const ARTEFACTS = fileURLToPath(new URL('../../artefacts/console/', import.meta.url))
const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js')

/** Returns the link of the console that `npm start` has printed. */
export function printedLink({ lines }: LocalStart): string {
  const link = lines.map(line => /^ +console +(http\S+)$/.exec(line)?.[1]).find(found => found !== undefined)
  if (link === undefined) throw new Error(`no address of the console was printed:\n${lines.join('\n')}`)
  return link
}

/** Opens the link that `npm start` has printed, which signs this browser in, and waits for the findings. */
export async function openPrintedLink(page: Page, start: LocalStart): Promise<void> {
  await page.goto(printedLink(start))
  await page.getByRole('heading', { level: 1, name: 'Findings' }).waitFor()
}

/** Widths at which every page is looked at. */
const [WIDE, NARROW] = [1280, 390]
const HEIGHT = 900
const THEMES = ['light', 'dark'] as const

/** Keeps pictures of the whole page in test/artefacts/console: both widths, both themes. */
export async function takePictures(page: Page, name: string): Promise<void> {
  mkdirSync(ARTEFACTS, { recursive: true })
  for (const theme of THEMES) {
    for (const width of [WIDE, NARROW]) {
      await look(page, theme, width)
      const overflow = await page.evaluate(
        'document.documentElement.scrollWidth - document.documentElement.clientWidth',
      )
      if (Number(overflow) > 0) throw new Error(`${name} is ${overflow} pixels wider than ${width}`)
      await page.screenshot({ path: join(ARTEFACTS, `${name}-${theme}-${width}.png`), fullPage: true })
    }
  }
  await look(page, 'light', WIDE)
}

/** Returns the violations that axe finds in the page: in both themes, and at the smaller width, where other elements are shown. */
export async function violations(page: Page): Promise<string[]> {
  const found: string[] = []
  for (const [theme, width] of [
    ['light', WIDE],
    ['dark', WIDE],
    ['light', NARROW],
  ] as const) {
    await look(page, theme, width)
    // The script of axe is evaluated by the debugger of the browser, which the policy of the page does not bind.
    await page.evaluate(() => 'axe' in globalThis).then(async has => has || (await evaluateAxe(page)))
    const results = await page.evaluate(async () => {
      const { axe } = globalThis as unknown as { axe: { run(): Promise<AxeResults> } }
      return (await axe.run()).violations.flatMap(({ id, nodes }) =>
        nodes.map(node => `${id}: ${node.html} ${node.failureSummary}`),
      )
    })
    found.push(...results.map(text => `${theme} ${width} ${text}`))
  }
  await look(page, 'light', WIDE)
  return found
}

async function look(page: Page, colorScheme: (typeof THEMES)[number], width: number): Promise<void> {
  await page.emulateMedia({ colorScheme })
  await page.setViewportSize({ width, height: HEIGHT })
}

interface AxeResults {
  readonly violations: readonly {
    readonly id: string
    readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[]
  }[]
}

async function evaluateAxe(page: Page): Promise<void> {
  const { readFile } = await import('node:fs/promises')
  await page.evaluate(await readFile(AXE, 'utf8'))
}
