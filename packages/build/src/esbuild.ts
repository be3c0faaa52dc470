import type { Plugin } from 'esbuild'
import type { PenstockOptions } from './options.ts'
import { watchEsbuild } from './plugin/esbuild-hooks.ts'
import { NAME, passesOf } from './plugin/plugin.ts'

/** Creates the plugin for esbuild. */
export default function penstock(options: PenstockOptions = {}): Plugin {
  const passes = options.disabled ? undefined : passesOf(options)
  return { name: NAME, setup: build => passes && watchEsbuild(build, passes) }
}
