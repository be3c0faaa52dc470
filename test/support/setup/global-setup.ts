import type { TestProject } from 'vitest/node'
import { type S3Access, type ServiceAddresses, startServices } from '../services/services.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    /** `inject('services')`: the servers that all integration tests share. Tests that kill one start their own. */
    services: ServiceAddresses
    /** Where the contract of the object store is tested; null when there is none, which only `npm run test:ceph` allows. */
    s3: S3Access | null
  }
}

/** Starts the shared servers once for the project `integration`. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const services = await startServices()
  const { redisUrl, clickhouseUrl, s3 } = services
  project.provide('services', { redisUrl, clickhouseUrl, s3 })
  project.provide('s3', s3)
  return () => services.stop()
}
