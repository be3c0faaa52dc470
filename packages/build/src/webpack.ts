import type { WebpackPluginInstance } from 'webpack'
import type { PenstockOptions } from './options.ts'
import { compilerPlugin } from './plugin/plugin.ts'

/** Creates the plugin for webpack. */
const penstock: (options?: PenstockOptions) => WebpackPluginInstance = compilerPlugin
export default penstock
