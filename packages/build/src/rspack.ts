import type { RspackPluginInstance } from '@rspack/core'
import type { PenstockOptions } from './options.ts'
import { plugin } from './plugin/plugin.ts'

const penstock: (options?: PenstockOptions) => RspackPluginInstance = plugin.rspack
export default penstock
