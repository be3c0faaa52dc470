import { defineConfig } from 'vitest/config'
import { MINUTE_MS } from '../../../schemas/units.ts'

/** Minutes of faults, and as long again to start, to recover and to compare. */
const MINUTES = Number(process.env.CHAOS_MINUTES || 10)

/** Configuration of `npm run test:chaos`, which fails processes, servers and networks under load. One file at a time. */
export default defineConfig({
  test: {
    name: 'chaos',
    include: ['test/chaos/**/*.test.ts'],
    // CI has no time for these, each of which takes some minutes.
    exclude: [
      'test/chaos/mutants.test.ts',
      ...(process.env.CI ? ['test/chaos/{completeness,partitions,redis-cluster,upgrade}.test.ts'] : []),
    ],
    maxWorkers: 1,
    experimental: { viteModuleRunner: false, nodeLoader: false },
    reporters: ['default'],
    // The lines of a run are its protocol: they appear when they are printed.
    disableConsoleIntercept: true,
    testTimeout: (MINUTES + 10) * MINUTE_MS,
    hookTimeout: 180_000,
  },
})
