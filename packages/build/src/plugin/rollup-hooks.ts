import { dirname, join, resolve } from 'node:path'
import type { Plugin } from 'rollup'
import type { Passes } from './passes.ts'

/** Creates the hooks of Rollup, which Rolldown and Vite have too. */
export function createRollupHooks(passes: Passes): Partial<Plugin> {
  // Each environment of Vite is a pass. They follow one another, so one of them is open at a time.
  let pass = {}
  return {
    outputOptions: options => (options.sourcemap === undefined ? { ...options, sourcemap: 'hidden' } : null),
    buildStart() {
      if (this.meta.watchMode) return
      pass = {}
      passes.begin(pass)
    },
    buildEnd(error) {
      if (error) passes.fail(pass)
    },
    renderError: () => passes.fail(pass),
    writeBundle(options, bundle) {
      if (this.meta.watchMode) return
      const directory = resolve(options.dir ?? dirname(options.file ?? '.'))
      passes.add({ directory, files: Object.keys(bundle).map(name => join(directory, name)) })
    },
    closeBundle: { order: 'post', sequential: true, handler: () => passes.end(pass) },
  }
}
