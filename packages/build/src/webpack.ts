import type { WebpackPluginInstance } from 'webpack'
import type { PenstockOptions } from './options.ts'
import { plugin } from './plugin/plugin.ts'

const penstock: (options?: PenstockOptions) => WebpackPluginInstance = plugin.webpack
export default penstock
