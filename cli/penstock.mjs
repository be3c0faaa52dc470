#!/usr/bin/env node
import { existsSync } from 'node:fs'

/**
 * The command `penstock`. A checkout and an image have the sources, which Node runs as they are. A package has them as JavaScript
 * in build/, because Node does not run TypeScript in node_modules. `start` and `console:link` are those of npm.
 */
const hasSources = existsSync(new URL('main.ts', import.meta.url))
const root = new URL(hasSources ? '..' : '../build/', import.meta.url)
const bootstrap = new URL('deploy/local/bootstrap.mjs', root)
const isLocal = ['start', 'console:link'].includes(process.argv[2]) && existsSync(bootstrap)
await import(isLocal ? bootstrap.href : new URL(hasSources ? 'cli/main.ts' : 'cli/main.js', root).href)
