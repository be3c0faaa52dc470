import { join } from 'node:path'
import { promisify } from 'node:util'
import rspack from '@rspack/core'
import esbuild from 'esbuild'
import { rolldown } from 'rolldown'
import { rollup } from 'rollup'
import { build as viteBuild } from 'vite'
import webpack from 'webpack'
import esbuildPlugin from '../../../packages/build/src/esbuild.ts'
import type { PenstockOptions } from '../../../packages/build/src/options.ts'
import rolldownPlugin from '../../../packages/build/src/rolldown.ts'
import rollupPlugin from '../../../packages/build/src/rollup.ts'
import rspackPlugin from '../../../packages/build/src/rspack.ts'
import vitePlugin from '../../../packages/build/src/vite.ts'
import webpackPlugin from '../../../packages/build/src/webpack.ts'

/** An application whose entry is `src/main.js`, and where its minified build goes. */
interface BundledApp {
  readonly root: string
  readonly directory: string
  /** Options of the plugin. Without them, the build makes hidden maps without it. */
  readonly penstock?: PenstockOptions
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

async function buildWithVite({ penstock, ...app }: BundledApp): Promise<void> {
  await viteBuild({
    root: app.root,
    configFile: false,
    logLevel: 'error',
    plugins: penstock ? [vitePlugin(penstock)] : [],
    build: {
      outDir: app.directory,
      ...(!penstock && { sourcemap: 'hidden' }),
      modulePreload: false,
      chunkSizeWarningLimit: Number.POSITIVE_INFINITY,
      rollupOptions: { input: mainOf(app) },
    },
  })
}

async function buildWithRollup({ penstock, ...app }: BundledApp): Promise<void> {
  const minify = {
    name: 'minify',
    renderChunk: (code: string) => esbuild.transform(code, { minify: true, sourcemap: 'external' }),
  }
  const bundle = await rollup({ input: mainOf(app), plugins: [minify, ...(penstock ? [rollupPlugin(penstock)] : [])] })
  await bundle.write({
    dir: app.directory,
    entryFileNames: '[name]-[hash].js',
    ...(!penstock && { sourcemap: 'hidden' }),
  })
  await bundle.close()
}

async function buildWithRolldown({ penstock, ...app }: BundledApp): Promise<void> {
  const bundle = await rolldown({ input: mainOf(app), plugins: penstock ? [rolldownPlugin(penstock)] : [] })
  await bundle.write({
    dir: app.directory,
    minify: true,
    entryFileNames: '[name]-[hash].js',
    ...(!penstock && { sourcemap: 'hidden' }),
  })
  await bundle.close()
}

async function buildWithWebpack({ penstock, ...app }: BundledApp): Promise<void> {
  const compiler = webpack({
    ...compilerOptions(app),
    ...(penstock ? { plugins: [webpackPlugin(penstock)] } : { devtool: 'hidden-source-map' }),
  })
  if (compiler === null) throw new Error('webpack gives no compiler')
  await finish(await promisify(compiler.run.bind(compiler))(), promisify(compiler.close.bind(compiler)))
}

async function buildWithRspack({ penstock, ...app }: BundledApp): Promise<void> {
  const compiler = rspack({
    ...compilerOptions(app),
    ...(penstock ? { plugins: [rspackPlugin(penstock)] } : { devtool: 'hidden-source-map' }),
  })
  await finish(await promisify(compiler.run.bind(compiler))(), promisify(compiler.close.bind(compiler)))
}

async function buildWithEsbuild({ penstock, ...app }: BundledApp): Promise<void> {
  await esbuild.build({
    entryPoints: [mainOf(app)],
    outdir: app.directory,
    entryNames: '[name]-[hash]',
    bundle: true,
    minify: true,
    format: 'esm',
    logLevel: 'silent',
    ...(penstock ? { plugins: [esbuildPlugin(penstock)] } : { sourcemap: 'external' }),
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
