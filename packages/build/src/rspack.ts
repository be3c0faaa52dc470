import type { RspackPluginInstance } from '@rspack/core'
import type { PenstockOptions } from './options.ts'
import { compilerPlugin } from './plugin/plugin.ts'

/** Creates the plugin for Rspack. */
const penstock: (options?: PenstockOptions) => RspackPluginInstance = compilerPlugin
export default penstock
