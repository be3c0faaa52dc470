import type { Plugin } from 'vite'
import type { PenstockOptions } from './options.ts'
import { NAME, passesOf } from './plugin/plugin.ts'
import { createRollupHooks } from './plugin/rollup-hooks.ts'

/**
 * Creates the plugins for Vite, which upload after the last environment of `vite build`. One of them holds the upload back, and
 * the other two begin and end that.
 */
export default function penstock(options: PenstockOptions = {}): Plugin[] {
  if (options.disabled) return []
  const passes = passesOf(options)
  return [
    {
      name: `${NAME}:begin`,
      apply: 'build',
      buildApp: { order: 'pre', handler: async () => passes.begin(passes) },
    },
    {
      // Vite has the hooks of Rollup, with types of its own.
      ...(createRollupHooks(passes) as object),
      name: NAME,
      enforce: 'post',
      apply: 'build',
      config: ({ build }) => (build?.sourcemap === undefined ? { build: { sourcemap: 'hidden' } } : undefined),
    },
    {
      name: `${NAME}:end`,
      apply: 'build',
      buildApp: {
        order: 'post',
        async handler(builder) {
          // Vite builds all environments if no hook has built one, but only after this hook.
          const environments = Object.values(builder.environments)
          if (environments.every(({ isBuilt }) => !isBuilt)) {
            for (const environment of environments) await builder.build(environment)
          }
          await passes.end(passes, { isPass: false })
        },
      },
    },
  ]
}
