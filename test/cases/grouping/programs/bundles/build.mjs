// Builds the application by five bundlers and by Next, each with its defaults for production, into out/<bundler>.
import { execFileSync } from 'node:child_process'
import { cpSync, readdirSync, writeFileSync } from 'node:fs'
import { rspack } from '@rspack/core'
import { build } from 'esbuild'
import { build as vite } from 'vite'
import webpack from 'webpack'

function page(folder, type) {
  const script = readdirSync(folder).find(name => /^main.*js$/.test(name))
  writeFileSync(`${folder}/index.html`, `<!doctype html><title>Shop</title><script ${type} src="${script}"></script>`)
}

function packed(bundler, folder) {
  const output = { path: `${process.cwd()}/${folder}`, filename: '[name].[contenthash].js' }
  const options = { mode: 'production', entry: './src/main.js', devtool: 'source-map', output }
  return new Promise((resolve, reject) => {
    bundler(options, (error, stats) => (error || stats.hasErrors() ? reject(error ?? stats.toString()) : resolve()))
  })
}

const common = { bundle: true, minify: true, splitting: true, format: 'esm', sourcemap: true }
await build({ ...common, entryPoints: ['src/main.js'], outdir: 'out/esbuild', entryNames: '[name]-[hash]' })
page('out/esbuild', 'type=module')
await vite({ base: './', logLevel: 'silent', build: { outDir: 'out/vite', sourcemap: true } })
await packed(webpack, 'out/webpack')
page('out/webpack', 'defer')
await packed(rspack, 'out/rspack')
page('out/rspack', 'defer')
const bin = name => `node_modules/.bin/${name}`
const run = (name, ...args) => execFileSync(bin(name), args, { stdio: ['ignore', 2, 2] })
run('parcel', 'build', 'index.html', '--dist-dir', 'out/parcel', '--no-cache')
writeFileSync('next.config.mjs', 'export default { productionBrowserSourceMaps: true }\n')
run('next', 'build')
cpSync('.next/static', 'out/next/_next/static', { recursive: true })
cpSync('.next/server/pages/index.html', 'out/next/index.html')
