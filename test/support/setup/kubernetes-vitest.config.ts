import { defineConfig } from 'vitest/config'

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
    testTimeout: 30 * 60_000,
    hookTimeout: 30 * 60_000,
  },
})
