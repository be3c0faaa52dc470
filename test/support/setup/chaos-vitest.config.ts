import { defineConfig } from 'vitest/config'
import { HOUR_MS } from '../../../schemas/units.ts'
import { lengthSettings } from './length-settings.ts'

/**
 * Configuration of `npm run test:chaos`, which fails processes, servers and networks under load: for a minute, or with
 * `--mode nightly` for ten and in every way. One file at a time.
 */
export default defineConfig(({ mode }) => {
  const { env, exclude } = lengthSettings(mode)
  return {
    test: {
      name: 'chaos',
      include: ['test/chaos/**/*.test.ts'],
      exclude: [...exclude, 'test/chaos/mutants.nightly.test.ts'],
      env,
      maxWorkers: 1,
      experimental: { viteModuleRunner: false, nodeLoader: false },
      reporters: ['default'],
      // The lines of a run are its protocol: they appear when they are printed.
      disableConsoleIntercept: true,
      // As long as the faults, and as long again to start, to recover and to compare.
      testTimeout: 2 * HOUR_MS,
      hookTimeout: 180_000,
    },
  }
})
