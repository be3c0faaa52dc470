#!/usr/bin/env node
import { existsSync } from 'node:fs'

/**
 * The command `penstock`. A checkout and an image have the sources, which Node runs as they are. A package has them as JavaScript
 * in build/, because Node does not run TypeScript in node_modules. `start` and `console:link` are those of npm.
 */
const hasSources = existsSync(new URL('main.ts', import.meta.url))
const [major, minor] = process.versions.node.split('.').map(Number)
const runsTypeScript = major > 23 || (major === 23 && minor >= 6) || (major === 22 && minor >= 18)
const root = new URL(hasSources ? '..' : '../build/', import.meta.url)
const bootstrap = new URL('deploy/local/bootstrap.mjs', root)
const isLocal = ['start', 'console:link'].includes(process.argv[2]) && existsSync(bootstrap)
if (hasSources && !isLocal && !runsTypeScript) {
  const advice = 'npm run cli uses the one of the checkout'
  process.stderr.write(`penstock: Node 22.18 or later is needed, and this is ${process.version}: ${advice}\n`)
  process.exit(2)
}
await import(isLocal ? bootstrap.href : new URL(hasSources ? 'cli/main.ts' : 'cli/main.js', root).href)
