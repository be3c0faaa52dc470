import type { Plugin } from 'vite'
import type { PenstockOptions } from './options.ts'
import { passesOf, plugin } from './plugin/plugin.ts'

/** Uploads after the last environment of `vite build`. One plugin holds the upload back, and the other two begin and end that. */
export default function penstock(options: PenstockOptions = {}): Plugin[] {
  if (options.disabled) return []
  const passes = passesOf(options)
  return [
    {
      name: 'penstock:begin',
      apply: 'build',
      buildApp: { order: 'pre', handler: async () => passes.begin(passes) },
    },
    plugin.vite(options) as Plugin,
    {
      name: 'penstock:end',
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
