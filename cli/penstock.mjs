#!/usr/bin/env node
import { existsSync } from 'node:fs'

/**
 * The command `penstock`. A checkout and an image have the sources, which Node runs as they are. A package has them as JavaScript
 * in build/, because Node does not run TypeScript in node_modules. `penstock start` is `npm start`.
 */
const hasSources = existsSync(new URL('main.ts', import.meta.url))
const root = new URL(hasSources ? '..' : '../build/', import.meta.url)
const bootstrap = new URL('deploy/local/bootstrap.mjs', root)
const isStart = process.argv[2] === 'start' && existsSync(bootstrap)
await import(isStart ? bootstrap.href : new URL(hasSources ? 'cli/main.ts' : 'cli/main.js', root).href)
