import { defineConfig } from 'vitest/config'
import { HOUR_MS, MINUTE_MS } from '../../../schemas/units.ts'

/** Configuration of `npm run test:kubernetes`, which installs the Helm chart on a real cluster. */
export default defineConfig({
  test: {
    name: 'kubernetes',
    include: ['test/kubernetes/**/*.test.ts'],
    maxWorkers: 1,
    experimental: { viteModuleRunner: false, nodeLoader: false },
    reporters: ['default'],
    // What a run has measured appears when it is printed.
    disableConsoleIntercept: true,
    // KUBERNETES_STEADY_MINUTES=10 takes 720 s of load, up to 900 s until one worker is left, the capacity before it and the
    // comparison after it.
    testTimeout: HOUR_MS,
    hookTimeout: 30 * MINUTE_MS,
  },
})
