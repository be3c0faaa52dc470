import { defineConfig } from 'vitest/config'
import { MINUTE_MS } from '../../../schemas/units.ts'

/** Configuration of `npm run test:mutants`, which shows that the faults of `npm run test:chaos` find a broken service. */
export default defineConfig({
  test: {
    name: 'mutants',
    include: ['test/chaos/mutants.nightly.test.ts'],
    maxWorkers: 1,
    experimental: { viteModuleRunner: false, nodeLoader: false },
    disableConsoleIntercept: true,
    testTimeout: 30 * MINUTE_MS,
  },
})
