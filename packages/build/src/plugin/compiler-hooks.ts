import { join } from 'node:path'
import type { Passes } from './passes.ts'

/** The parts of a compiler that webpack and Rspack share. Both apply a plugin before they run. */
export interface Compiler {
  readonly options: { devtool?: unknown }
  readonly outputPath: string
  readonly watchMode: boolean
  readonly hooks: {
    readonly run: { tap(name: string, run: () => void): void }
    readonly failed: { tap(name: string, run: () => void): void }
    readonly done: { tapPromise(name: string, run: (stats: Stats) => Promise<void>): void }
  }
}

interface Stats {
  hasErrors(): boolean
  readonly compilation: { getAssets(): readonly { readonly name: string }[] }
}

/**
 * Watches a compiler of webpack or Rspack. All compilers of an array of configurations exist before the first one runs, so the
 * last one uploads for all.
 */
export function watchCompiler(name: string, compiler: Compiler, passes: Passes): void {
  const { options, hooks } = compiler
  // The defaults of the compiler are applied afterwards, so this is undefined unless the user has chosen.
  if (options.devtool === undefined) options.devtool = 'hidden-source-map'
  passes.begin(compiler)
  hooks.run.tap(name, () => passes.begin(compiler))
  hooks.failed.tap(name, () => {
    passes.fail(compiler)
    void passes.end(compiler)
  })
  hooks.done.tapPromise(name, async stats => {
    if (stats.hasErrors()) passes.fail(compiler)
    else if (!compiler.watchMode) {
      const directory = compiler.outputPath
      const names = stats.compilation.getAssets().map(asset => asset.name.replace(/\?.*$/, ''))
      passes.add({ directory, files: names.map(file => join(directory, file)) })
    }
    await passes.end(compiler)
  })
}
