import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { PenstockOptions } from './options.ts'
import { environment } from './plugin/settings.ts'
import { uploadOutputs } from './plugin/upload-outputs.ts'

/** The parts of a configuration of Next that change. */
export interface NextConfig {
  productionBrowserSourceMaps?: boolean | undefined
  experimental?: { serverSourceMaps?: boolean | undefined } | undefined
  compiler?: { runAfterProductionCompile?: ((build: NextBuild) => Promise<void>) | undefined } | undefined
  // biome-ignore lint/suspicious/noExplicitAny: Next gives the configuration of webpack this type
  webpack?: ((config: any, context: any) => any) | null | undefined
}

/** Directories of a build. */
interface NextBuild {
  readonly projectDir: string
  readonly distDir: string
}

/**
 * Adds the upload to a configuration of Next (15.4 or later), for webpack and for Turbopack. Next calls it once, after the
 * compilers of server, edge and client.
 */
export default function withPenstock<C extends NextConfig>(config: C, options: PenstockOptions = {}): C {
  if (options.disabled) return config
  const after = config.compiler?.runAfterProductionCompile
  return {
    ...config,
    productionBrowserSourceMaps: config.productionBrowserSourceMaps ?? true,
    experimental: { serverSourceMaps: true, ...config.experimental },
    compiler: {
      ...config.compiler,
      async runAfterProductionCompile(build: NextBuild) {
        await after?.(build)
        if (!options.deferUpload) await uploadOutputs(options, outputsOf(build))
      },
    },
    // Next refuses a hook for webpack in a build by Turbopack.
    ...(!environment.TURBOPACK && { webpack: hideMaps(config.webpack) }),
  }
}

/** Bundles do not name their maps, which are removed. */
function hideMaps(change: NextConfig['webpack']): NextConfig['webpack'] {
  return (given, context) => {
    const config = change ? change(given, context) : given
    if (!context.dev) config.devtool = 'hidden-source-map'
    return config
  }
}

function outputsOf({ projectDir, distDir }: NextBuild) {
  const directory = resolve(projectDir, distDir)
  return [
    { directory: join(directory, 'static'), urlBase: '_next/static/' },
    { directory: join(directory, 'server'), urlBase: 'server/' },
  ].filter(output => existsSync(output.directory))
}
