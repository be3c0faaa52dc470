import type { TestProject } from 'vitest/node'
import { type ServiceAddresses, startServices } from './services.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    /** `inject('services')`: the servers that all integration tests share. Tests that kill one start their own. */
    services: ServiceAddresses
  }
}

/** Starts the shared servers once for the project `integration`. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const services = await startServices()
  const { redisUrl, clickhouseUrl, s3 } = services
  project.provide('services', { redisUrl, clickhouseUrl, s3 })
  return () => services.stop()
}
