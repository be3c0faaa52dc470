import type { Plugin } from 'rolldown'
import type { PenstockOptions } from './options.ts'
import { plugin } from './plugin/plugin.ts'

const penstock: (options?: PenstockOptions) => Plugin = plugin.rolldown
export default penstock
