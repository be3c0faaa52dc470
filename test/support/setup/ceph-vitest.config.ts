import { defineConfig } from 'vitest/config'

/** `npm run test:ceph`: what the object store must do, asked of Ceph's gateway. */
export default defineConfig({
  test: {
    name: 'ceph',
    include: ['test/integration/shared/object-store*.test.ts'],
    globalSetup: ['test/support/setup/ceph-setup.ts'],
    testTimeout: 60_000,
    hookTimeout: 120_000,
    maxWorkers: 1,
  },
})
