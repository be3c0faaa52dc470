import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { bundleApp } from './serve-sdk-pages.ts'

const README = new URL('../../../../packages/browser/README.md', import.meta.url)

/** The addresses to which a proxy sends. */
interface Service {
  readonly ingestUrl: string
  readonly apiUrl: string
}

/** Returns the block of code in the README of the browser package whose first line names it, with the addresses of this service. */
export async function readRecipe(name: string, { ingestUrl, apiUrl }: Service): Promise<string> {
  const blocks = [...(await readFile(README, 'utf8')).matchAll(/^```\w+\n((?:#|\/\/) [\s\S]*?)^```$/gm)]
  const found = blocks.flatMap(([, code = '']) => (/^(?:#|\/\/) (.+)\n/.exec(code)?.[1]?.startsWith(name) ? code : []))
  const [recipe] = found
  if (recipe === undefined || found.length > 1) throw new Error(`the README has ${found.length} recipes for ${name}`)
  const local = recipe
    // The test has no certificates.
    .replaceAll(/https:\/\/(?=\$\{|\w+\.penstock\.example)/g, 'http://')
    .replaceAll('ingest.penstock.example', new URL(ingestUrl).host)
    .replaceAll('api.penstock.example', new URL(apiUrl).host)
  if (local.includes('penstock.example')) throw new Error(`the recipe for ${name} names another host`)
  return local
}

/** Writes the page of the tests, which sends with this public key to `/telemetry`, as static files into a directory. */
export async function writeSdkSite(directory: string, key: string): Promise<void> {
  const { scripts } = await bundleApp()
  for (const [path, contents] of scripts) {
    await mkdir(dirname(join(directory, path)), { recursive: true })
    await writeFile(join(directory, path), contents)
  }
  await writeFile(join(directory, 'settings.js'), `globalThis.settings = ${JSON.stringify({ key })}`)
  await writeFile(
    join(directory, 'index.html'),
    `<!doctype html><title>Shop</title><link rel="icon" href="data:,"><script src="/settings.js"></script>
<script type="module" src="/scripts/app.js"></script><h1>Shop</h1>`,
  )
}
