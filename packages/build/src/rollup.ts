import type { Plugin } from 'rollup'
import type { PenstockOptions } from './options.ts'
import { plugin } from './plugin/plugin.ts'

const penstock: (options?: PenstockOptions) => Plugin = plugin.rollup
export default penstock
