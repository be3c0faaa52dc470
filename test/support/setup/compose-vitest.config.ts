import { defineConfig } from 'vitest/config'
import { MINUTE_MS } from '../../../schemas/units.ts'

/** Minutes of faults, and as long again to start, to recover and to compare. */
const MINUTES = Number(process.env.CHAOS_MINUTES || 5)

/**
 * Configuration of `npm run test:compose`: tests of the containers that compose.yaml describes, and those of test/e2e that look
 * at a whole installation from outside. Each file starts one of its own (PENSTOCK_STACK, test/support/services/stack.ts).
 */
export default defineConfig({
  test: {
    name: 'compose',
    include: [
      'test/compose/**/*.test.ts',
      'test/e2e/opentelemetry-*.test.ts',
      'test/e2e/crashes.test.ts',
      'test/e2e/replay-crashes.long.test.ts',
    ],
    maxWorkers: 1,
    experimental: { viteModuleRunner: false, nodeLoader: false },
    reporters: ['default'],
    disableConsoleIntercept: true,
    testTimeout: (MINUTES + 10) * MINUTE_MS,
    hookTimeout: 300_000,
  },
})
