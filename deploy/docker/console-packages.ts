import { readFileSync, writeFileSync } from 'node:fs'
import { CONSOLE_DEPENDENCIES } from './console-dependencies.ts'

/**
 * Reduces package.json and package-lock.json of the image's build to the packages that the console is built with, so that 40 MB are
 * installed instead of all tools of development, 1.6 GB. `npm ci` still verifies each package against the lock.
 */
const NEEDED = ['vite', ...CONSOLE_DEPENDENCIES]

interface Manifest {
  dependencies?: Record<string, string | undefined>
  devDependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
  workspaces?: string[]
}

for (const file of ['package.json', 'package-lock.json']) {
  const content = JSON.parse(readFileSync(file, 'utf8')) as Manifest & { packages?: Record<string, Manifest> }
  const manifest = content.packages?.[''] ?? content
  const all = { ...manifest.devDependencies, ...manifest.dependencies }
  manifest.dependencies = Object.fromEntries(NEEDED.map(name => [name, all[name]]))
  manifest.devDependencies = {}
  manifest.optionalDependencies = {}
  delete manifest.workspaces
  writeFileSync(file, JSON.stringify(content))
}
