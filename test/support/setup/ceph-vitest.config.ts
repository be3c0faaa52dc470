import { defineConfig } from 'vitest/config'

/** Configuration of `npm run test:ceph`, which tests the contract of the object store on the gateway of Ceph. */
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
