import { dirname, resolve } from 'node:path'
import type { PluginBuild } from 'esbuild'
import type { Passes } from './passes.ts'

/** Watches a build of esbuild. Each rebuild of a context is a pass of its own. */
export function watchEsbuild({ initialOptions: options, onStart, onEnd }: PluginBuild, passes: Passes): void {
  if (options.write === false) return
  const pass = {}
  options.sourcemap ??= 'external'
  // It names the files that were written.
  options.metafile = true
  onStart(() => passes.begin(pass))
  onEnd(async ({ errors, metafile }) => {
    if (errors.length > 0 || !metafile) passes.fail(pass)
    else {
      const workingDirectory = resolve(options.absWorkingDir ?? '.')
      const directory = resolve(workingDirectory, options.outdir ?? dirname(options.outfile ?? '.'))
      const files = Object.keys(metafile.outputs).map(file => resolve(workingDirectory, file))
      passes.add({ directory, files })
    }
    await passes.end(pass)
  })
}
