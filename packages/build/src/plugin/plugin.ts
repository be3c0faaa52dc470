import { createUnplugin } from 'unplugin'
import type { PenstockOptions } from '../options.ts'
import type { BuildOutput } from '../upload/find-build-files.ts'
import { watchCompiler } from './compiler-hooks.ts'
import { watchEsbuild } from './esbuild-hooks.ts'
import { Passes } from './passes.ts'
import { createRollupHooks } from './rollup-hooks.ts'
import { environment } from './settings.ts'

const NAME = 'penstock'

/** Passes by the release that they build. Each entry of an array of configurations may have an instance of the plugin. */
const releases = new Map<string, Passes>()

/** The plugin for every bundler. It does nothing before the files are written, apart from switching source maps on. */
export const plugin = createUnplugin<PenstockOptions | undefined, false>((options = {}) => {
  if (options.disabled) return { name: NAME }
  const passes = passesOf(options)
  // Loaded while the bundler works, which for some is another process.
  if (!options.deferUpload) void uploader()
  const { vite, ...hooks } = createRollupHooks(passes)
  return {
    name: NAME,
    enforce: 'post',
    rollup: hooks,
    // Both have the hooks of Rollup, with types of their own.
    rolldown: hooks as object,
    vite: { ...hooks, ...vite } as object,
    webpack: compiler => watchCompiler(NAME, compiler, passes),
    rspack: compiler => watchCompiler(NAME, compiler, passes),
    esbuild: { setup: build => watchEsbuild(build, passes) },
  }
})

const uploader = () => import('./upload-outputs.ts')

/** Returns the passes of the release that these options name. */
export function passesOf(options: PenstockOptions): Passes {
  const { url = environment.PENSTOCK_URL, version = environment.PENSTOCK_VERSION } = options
  const name = JSON.stringify([url, version, options.key, options.deferUpload])
  const passes =
    releases.get(name) ?? new Passes({ upload, warn: text => void process.stderr.write(`[penstock] ${text}\n`) })
  passes.use(options)
  releases.set(name, passes)
  return passes
}

async function upload(options: PenstockOptions, outputs: readonly BuildOutput[]): Promise<void> {
  if (options.deferUpload) return
  const { uploadOutputs } = await uploader()
  await uploadOutputs(options, outputs)
}
