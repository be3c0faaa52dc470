import type { Plugin } from 'esbuild'
import type { PenstockOptions } from './options.ts'
import { plugin } from './plugin/plugin.ts'

const penstock: (options?: PenstockOptions) => Plugin = plugin.esbuild
export default penstock
