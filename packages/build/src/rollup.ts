import type { Plugin } from 'rollup'
import type { PenstockOptions } from './options.ts'
import { NAME, passesOf } from './plugin/plugin.ts'
import { createRollupHooks } from './plugin/rollup-hooks.ts'

/** Creates the plugin for Rollup. */
export default function penstock(options: PenstockOptions = {}): Plugin {
  return { name: NAME, ...(!options.disabled && createRollupHooks(passesOf(options))) }
}
