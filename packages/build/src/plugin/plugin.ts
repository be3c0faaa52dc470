import type { PenstockOptions } from '../options.ts'
import type { BuildOutput } from '../upload/find-build-files.ts'
import { type Compiler, watchCompiler } from './compiler-hooks.ts'
import { Passes } from './passes.ts'
import { environment } from './settings.ts'

/** Name of the plugin in every bundler. */
export const NAME = 'penstock'

/** Passes by the release that they build. Each entry of an array of configurations may have an instance of the plugin. */
const releases = new Map<string, Passes>()

/** Returns the passes of the release that these options name. */
export function passesOf(options: PenstockOptions): Passes {
  // Loaded while the bundler works, which for some is another process.
  if (!options.deferUpload) void uploader()
  const { url = environment.PENSTOCK_URL, version = environment.PENSTOCK_VERSION } = options
  const name = JSON.stringify([url, version, options.key, options.deferUpload])
  const passes =
    releases.get(name) ?? new Passes({ upload, warn: text => void process.stderr.write(`[penstock] ${text}\n`) })
  passes.use(options)
  releases.set(name, passes)
  return passes
}

/** The plugin of webpack, which Rspack takes too. */
export function compilerPlugin(options: PenstockOptions = {}): { apply(compiler: unknown): void } {
  const passes = options.disabled ? undefined : passesOf(options)
  return { apply: compiler => passes && watchCompiler(NAME, compiler as Compiler, passes) }
}

const uploader = () => import('./upload-outputs.ts')

async function upload(options: PenstockOptions, outputs: readonly BuildOutput[]): Promise<void> {
  if (options.deferUpload) return
  const { uploadOutputs } = await uploader()
  await uploadOutputs(options, outputs)
}
