import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { build as esbuild } from 'esbuild'
import { build as viteBuild } from 'vite'
import webpack from 'webpack'

/** Sources of a small shop in three modules. `placeOrder` fails in an async function that a method of a class calls. */
const SOURCES = {
  'main.ts': `import { Cart } from './cart'

const RELEASE: string = '%RELEASE%'

async function placeOrder(sku: string): Promise<number> {
  const cart = new Cart(RELEASE)
  cart.add({ sku, count: 2 })
  return await cart.checkout()
}

;(globalThis as unknown as { shop: unknown }).shop = { placeOrder, release: RELEASE }
`,
  'cart.ts': `import { priceOf } from './pricing'

interface Item {
  readonly sku: string
  readonly count: number
}

export class Cart {
  private readonly items: Item[] = []
  constructor(readonly release: string) {}

  add(item: Item): void {
    if (this.items.length > 100) throw new RangeError('the cart is full')
    this.items.push(item)
  }

  async checkout(): Promise<number> {
    let total = 0
    for (const item of this.items) {
      total += item.count * (await priceOf(item.sku))
    }
    return total
  }
}
`,
  'pricing.ts': `const PRICES = new Map<string, number>([['book', 12]])

export class UnknownPriceError extends Error {}

export async function priceOf(sku: string): Promise<number> {
  await Promise.resolve(sku)
  return lookUp(sku)
}

function lookUp(sku: string): number {
  const price = PRICES.get(sku)
  if (price === undefined) {
    throw new UnknownPriceError('no price of ' + sku + ' in ' + PRICES.size)
  }
  return price
}
`,
}

/** Original frames of its stack, innermost first. */
export const ORIGINAL_FRAMES = [
  { function: 'lookUp', file: 'pricing.ts', line: lineOf('pricing.ts', 'throw new UnknownPriceError') },
  { function: 'priceOf', file: 'pricing.ts', line: lineOf('pricing.ts', 'return lookUp') },
  { function: 'Cart.checkout', file: 'cart.ts', line: lineOf('cart.ts', 'total +=') },
  { function: 'placeOrder', file: 'main.ts', line: lineOf('main.ts', 'return await') },
]

function lineOf(file: keyof typeof SOURCES, text: string): number {
  return SOURCES[file].split('\n').findIndex(line => line.includes(text)) + 1
}

/** Build of the app with its script and map. */
export interface BuiltApp {
  /** Directory of the build. */
  readonly directory: string
  /** Path of the script in the directory; its name contains a hash. */
  readonly script: string
  readonly map: Buffer
}

/** Builds of the app by the name of their bundler. */
export const BUNDLERS = { esbuild: buildWithEsbuild, vite: buildWithVite, webpack: buildWithWebpack } as const
/** Name of a bundler. */
export type Bundler = keyof typeof BUNDLERS

/** Builds the app, minified, with a hash of its content in its name and a source map beside it. */
export async function buildApp(bundler: Bundler, root: string, release: string): Promise<BuiltApp> {
  const source = join(root, 'src')
  await mkdir(source, { recursive: true })
  for (const [name, text] of Object.entries(SOURCES)) {
    await writeFile(join(source, name), text.replace('%RELEASE%', release))
  }
  const directory = join(root, 'dist')
  await BUNDLERS[bundler](root, directory)
  const written = await readdir(directory, { recursive: true })
  const script = written.find(path => path.endsWith('.js'))
  if (script === undefined) throw new Error(`${bundler} has written no script: ${written.join()}`)
  return { directory, script, map: await readFile(join(directory, `${script}.map`)) }
}

async function buildWithEsbuild(root: string, directory: string): Promise<void> {
  await esbuild({
    entryPoints: { app: join(root, 'src/main.ts') },
    outdir: join(directory, 'assets'),
    entryNames: '[name]-[hash]',
    bundle: true,
    minify: true,
    sourcemap: true,
    format: 'esm',
    target: 'es2022',
    logLevel: 'error',
  })
}

async function buildWithVite(root: string, directory: string): Promise<void> {
  await viteBuild({
    root,
    configFile: false,
    logLevel: 'error',
    build: {
      outDir: directory,
      minify: true,
      sourcemap: true,
      modulePreload: false,
      rollupOptions: { input: join(root, 'src/main.ts') },
    },
  })
}

async function buildWithWebpack(root: string, directory: string): Promise<void> {
  // A loader, given to webpack by its path, removes the types with the transform of esbuild.
  const loader = join(root, 'strip-types.cjs')
  const esbuildPath = JSON.stringify(createRequire(import.meta.url).resolve('esbuild'))
  await writeFile(
    loader,
    `const { transform } = require(${esbuildPath})
module.exports = function (source) {
  const done = this.async()
  transform(source, { loader: 'ts', sourcemap: true, sourcefile: this.resourcePath }).then(
    ({ code, map }) => done(null, code, JSON.parse(map)),
    done,
  )
}
`,
  )
  const compiler = webpack({
    mode: 'production',
    context: root,
    entry: { app: './src/main.ts' },
    devtool: 'source-map',
    target: 'web',
    resolve: { extensions: ['.ts', '.js'] },
    module: { rules: [{ test: /\.ts$/, use: loader }] },
    output: { path: directory, filename: 'static/[name].[contenthash].js' },
  })
  if (compiler === null) throw new Error('webpack gives no compiler')
  const stats = await promisify(compiler.run.bind(compiler))()
  await promisify(compiler.close.bind(compiler))()
  if (stats?.hasErrors()) throw new Error(stats.toString({ all: false, errors: true }))
}
