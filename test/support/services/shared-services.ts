import { inject } from 'vitest'
import type { ServiceAddresses } from './services.ts'

/**
 * Returns the servers of this vitest worker. A worker runs one test file after the other, so no two files use the same
 * server at the same time. A test that kills, stops or fills a server starts its own with `startServices`.
 */
export function sharedServices(): ServiceAddresses {
  const services = inject('services')
  const worker = Number(process.env.VITEST_POOL_ID) - 1
  const own = services[worker % services.length]
  if (own === undefined) throw new Error('no services were provided: run this test in the project "integration"')
  return own
}
