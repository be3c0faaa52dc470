import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import { lengthSettings } from './test/support/setup/length-settings.ts'

/**
 * In CI a failed test runs once more, because the tests share the machine with the servers they use. It waits until a
 * server that hung is there again. `.ci/run` names the tests that pass only then.
 */
const retry = process.env.CI ? { count: 1, delay: 20_000 } : 0

/** Two files at a time: each worker has servers of its own, and a third worker gained nothing on two cores. */
const maxWorkers = Math.min(2, availableParallelism())

process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, 'node_modules/.cache/compile')

const shared = {
  maxWorkers,
  // Node imports the TypeScript itself, as it does for the processes. Vite's own runner reads every import through a
  // getter, which makes hot loops up to ten times slower.
  experimental: { viteModuleRunner: false, nodeLoader: false },
}

/** Tests of reads, writes and deletions that run on two shards of ClickHouse too. */
const FULL_ON_SHARDS = [
  'api/{dropping,findings,moved-findings,sessions}.test.ts',
  'api/logs/*.test.ts',
  'api/receipts/{accepted,not-stored,replayed}.test.ts',
  'api/traces/{attribute-search,completeness,list-traces,membership,read-trace,trace-access}.test.ts',
  'clickhouse/findings-snapshot.test.ts',
]
const ON_SHARDS = {
  short: [],
  full: FULL_ON_SHARDS,
  nightly: [
    ...FULL_ON_SHARDS,
    'api/retention.test.ts',
    'api/sessions/{list-sessions,timeline}.test.ts',
    'letters/*.test.ts',
    'cli/{audit,backup,sessions.long}.test.ts',
    'workers/{batch-pool,formed-differently}.test.ts',
    'workers/upkeep/{erasures,retention}.test.ts',
  ],
}

/**
 * Unit tests are beside the code and need no server, the rules of the house read it; the others run on the real services of
 * test/support.
 */
export default defineConfig(({ mode }) => {
  const { length, env, exclude } = lengthSettings(mode)
  const common = { ...shared, env, exclude }
  return {
    test: {
      projects: [
        {
          test: {
            ...common,
            name: 'unit',
            include: [
              '{schemas,packages,shared,clickhouse,letters,findings,promql,alerts,ingest,workers,api,cli,console,deploy,bench}/**/*.test.ts',
            ],
            // Only ends a test that hangs: the slowest takes 20 s on two idle cores.
            testTimeout: 300_000,
          },
        },
        {
          test: { ...common, name: 'house', include: ['test/house/**/*.test.ts'], testTimeout: 120_000 },
        },
        {
          test: {
            ...common,
            name: 'integration',
            include: ['test/integration/**/*.test.ts'],
            exclude: [...exclude, 'test/integration/cluster/**'],
            globalSetup: ['test/support/setup/global-setup.ts'],
            setupFiles: ['test/support/setup/empty-redis.ts'],
            retry,
            testTimeout: 60_000,
            hookTimeout: 120_000,
          },
        },
        {
          test: {
            ...common,
            name: 'cluster',
            include: ['cluster/**/*.test.ts', ...ON_SHARDS[length]].map(path => `test/integration/${path}`),
            globalSetup: ['test/support/setup/cluster-setup.ts'],
            setupFiles: ['test/support/setup/empty-redis.ts'],
            retry,
            testTimeout: 60_000,
            hookTimeout: 120_000,
          },
        },
        {
          test: {
            ...common,
            name: 'e2e',
            include: ['test/e2e/**/*.test.ts'],
            retry,
            testTimeout: 180_000,
            hookTimeout: 180_000,
          },
        },
      ],
    },
  }
})
