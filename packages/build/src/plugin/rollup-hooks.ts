import { dirname, join, resolve } from 'node:path'
import type { Plugin } from 'rollup'
import type { Passes } from './passes.ts'

/** Hooks of Rollup, which Rolldown and Vite have too, and those of Vite. */
export function createRollupHooks(passes: Passes) {
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
    vite: {
      apply: 'build',
      config: ({ build }: { build?: { sourcemap?: unknown } }) =>
        build?.sourcemap === undefined ? { build: { sourcemap: 'hidden' } } : undefined,
    },
  } satisfies Partial<Plugin> & { vite: object }
}
