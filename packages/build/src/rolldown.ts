import type { Plugin } from 'rolldown'
import type { PenstockOptions } from './options.ts'
import penstockOfRollup from './rollup.ts'

/** Creates the plugin for Rolldown, which has the hooks of Rollup with types of its own. */
const penstock = penstockOfRollup as unknown as (options?: PenstockOptions) => Plugin
export default penstock
