import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { build } from 'vite'
import { BUILT, CONSOLE, DIGEST_FILE, digestOfSources } from './freshness.ts'

/**
 * Builds the console, and compresses its files once, so that no process does. The digest of the sources is written last: a build
 * that was interrupted counts as none.
 */
const digest = digestOfSources()
rmSync(DIGEST_FILE, { force: true })
// The first versions with light-dark() and the other features that the styles rely on.
const TARGET = ['chrome123', 'firefox120', 'safari17.5']
const COMMON = { root: CONSOLE, base: '/console/', configFile: false, logLevel: 'warn' } as const
// How long the parts of a build take says nothing about its result.
const CHECKS = { bundlerTimings: false } as const
// The stage is one script that its document, which has an opaque origin, can load without being allowed to read other files.
await build({
  ...COMMON,
  build: {
    outDir: BUILT,
    emptyOutDir: true,
    target: TARGET,
    reportCompressedSize: false,
    modulePreload: false,
    rolldownOptions: {
      checks: CHECKS,
      input: join(CONSOLE, 'stage/stage.ts'),
      output: { format: 'iife', entryFileNames: 'assets/stage-[hash].js' },
    },
  },
})
await build({
  ...COMMON,
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: BUILT,
    emptyOutDir: false,
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    target: TARGET,
    reportCompressedSize: false,
    rolldownOptions: {
      checks: CHECKS,
      input: { index: join(CONSOLE, 'index.html'), player: join(CONSOLE, 'player.html') },
    },
  },
})
const assets = join(BUILT, 'assets')
const stage = readdirSync(assets).find(name => name.startsWith('stage-'))
const player = join(BUILT, 'player.html')
// The styles of the console are put into every document, and this one has its own.
const document = readFileSync(player, 'utf8').replace(/ *<link rel="stylesheet"[^>]*>\n/, '')
writeFileSync(player, document.replace('%STAGE%', `/console/assets/${stage}`))
for (const name of readdirSync(assets)) {
  writeFileSync(join(assets, `${name}.gz`), gzipSync(readFileSync(join(assets, name)), { level: 9 }))
}
writeFileSync(DIGEST_FILE, digest)
