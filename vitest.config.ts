import { defineConfig } from 'vitest/config'

/** In CI a test that meets a stall of the machine is run once more: two cores serve the tests and all the servers they use. */
const retry = process.env.CI ? 1 : 0

/** Unit tests stand beside the code and need nothing; the others run on the real services of test/support. */
export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          include: ['{schemas,shared,clickhouse,ingest,workers,api,cli,deploy,bench}/**/*.test.ts'],
          testTimeout: 20_000,
        },
      },
      {
        test: {
          name: 'integration',
          include: ['test/integration/**/*.test.ts'],
          globalSetup: ['test/support/setup/global-setup.ts'],
          retry,
          testTimeout: 60_000,
          hookTimeout: 120_000,
          maxWorkers: 1,
        },
      },
      {
        test: {
          name: 'e2e',
          include: ['test/e2e/**/*.test.ts'],
          retry,
          testTimeout: 180_000,
          hookTimeout: 180_000,
          maxWorkers: 1,
        },
      },
    ],
  },
})
