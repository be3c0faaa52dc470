import { join } from 'node:path'
import { promisify } from 'node:util'
import rspack from '@rspack/core'
import esbuild from 'esbuild'
import { rolldown } from 'rolldown'
import { rollup } from 'rollup'
import { build as viteBuild } from 'vite'
import webpack from 'webpack'

/** An application whose entry is `src/main.js`, and where its minified build goes. */
interface BundledApp {
  readonly root: string
  readonly directory: string
  /** Whether webpack minifies. Default: true. Terser takes minutes for thousands of modules. */
  readonly minimize?: boolean
  /** The plugin for this bundler. Without it, the build makes hidden maps itself. */
  // biome-ignore lint/suspicious/noExplicitAny: each bundler has a type of its own for plugins
  readonly plugin?: any
}

/** Builds an application with a bundler of this name. Each module becomes a part of one minified chunk with a hash in its name. */
export const BUILD_WITH = {
  vite: buildWithVite,
  rollup: buildWithRollup,
  rolldown: buildWithRolldown,
  webpack: buildWithWebpack,
  rspack: buildWithRspack,
  esbuild: buildWithEsbuild,
} as const

/** Name of a bundler. */
export type BundlerName = keyof typeof BUILD_WITH

const mainOf = ({ root }: BundledApp) => join(root, 'src/main.js')

async function buildWithVite({ plugin, ...app }: BundledApp): Promise<void> {
  await viteBuild({
    root: app.root,
    configFile: false,
    logLevel: 'error',
    plugins: plugin ? [plugin] : [],
    build: {
      outDir: app.directory,
      ...(!plugin && { sourcemap: 'hidden' }),
      modulePreload: false,
      chunkSizeWarningLimit: Number.POSITIVE_INFINITY,
      rollupOptions: { input: mainOf(app) },
    },
  })
}

async function buildWithRollup({ plugin, ...app }: BundledApp): Promise<void> {
  const minify = {
    name: 'minify',
    renderChunk: (code: string) => esbuild.transform(code, { minify: true, sourcemap: 'external' }),
  }
  const bundle = await rollup({ input: mainOf(app), plugins: [minify, ...(plugin ? [plugin] : [])] })
  await bundle.write({
    dir: app.directory,
    entryFileNames: '[name]-[hash].js',
    ...(!plugin && { sourcemap: 'hidden' }),
  })
  await bundle.close()
}

async function buildWithRolldown({ plugin, ...app }: BundledApp): Promise<void> {
  const bundle = await rolldown({ input: mainOf(app), plugins: plugin ? [plugin] : [] })
  await bundle.write({
    dir: app.directory,
    minify: true,
    entryFileNames: '[name]-[hash].js',
    ...(!plugin && { sourcemap: 'hidden' }),
  })
  await bundle.close()
}

async function buildWithWebpack({ plugin, ...app }: BundledApp): Promise<void> {
  const compiler = webpack({
    ...compilerOptions(app),
    optimization: { minimize: app.minimize ?? true },
    ...(plugin ? { plugins: [plugin] } : { devtool: 'hidden-source-map' }),
  })
  if (compiler === null) throw new Error('webpack gives no compiler')
  await finish(await promisify(compiler.run.bind(compiler))(), promisify(compiler.close.bind(compiler)))
}

async function buildWithRspack({ plugin, ...app }: BundledApp): Promise<void> {
  const compiler = rspack({
    ...compilerOptions(app),
    ...(plugin ? { plugins: [plugin] } : { devtool: 'hidden-source-map' }),
  })
  await finish(await promisify(compiler.run.bind(compiler))(), promisify(compiler.close.bind(compiler)))
}

async function buildWithEsbuild({ plugin, ...app }: BundledApp): Promise<void> {
  await esbuild.build({
    entryPoints: [mainOf(app)],
    outdir: app.directory,
    entryNames: '[name]-[hash]',
    bundle: true,
    minify: true,
    format: 'esm',
    logLevel: 'silent',
    ...(plugin ? { plugins: [plugin] } : { sourcemap: 'external' }),
  })
}

function compilerOptions(app: BundledApp) {
  return {
    mode: 'production' as const,
    context: app.root,
    entry: { main: mainOf(app) },
    target: 'web' as const,
    performance: false as const,
    output: { path: app.directory, filename: '[name].[contenthash].js' },
  }
}

interface Stats {
  hasErrors(): boolean
  toString(options: { all: boolean; errors: boolean }): string
}

async function finish(stats: Stats | undefined, close: () => Promise<unknown>): Promise<void> {
  await close()
  if (stats?.hasErrors()) throw new Error(stats.toString({ all: false, errors: true }))
}
