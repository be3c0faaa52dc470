import type { TestProject } from 'vitest/node'
import type { ClientName, ClientProgram } from '../clients/client-programs.ts'
import type { InstalledTools, ToolLanguage } from '../clients/openapi-tools.ts'
import { type S3Access, type ServiceAddresses, startServices } from '../services/services.ts'
import { watchS3 } from './watch-s3.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    /** Servers of each vitest worker; tests read them with `sharedServices()`. */
    services: readonly ServiceAddresses[]
    /** S3 server that the contract of the object store is tested on; only `npm run test:ceph` may provide null. */
    s3: S3Access | null
    /** Clients of OpenTelemetry, of `npm run test:clients`. */
    clients: Readonly<Record<ClientName, ClientProgram>>
    /** Tools that make clients of the OpenAPI document, of `npm run test:clients`. */
    openApiTools: Readonly<Record<ToolLanguage, InstalledTools>>
  }
}

/** Starts Redis, ClickHouse and S3 for each vitest worker of the project `integration`. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const started = await Promise.all(Array.from({ length: project.config.maxWorkers }, () => startServices()))
  const services = started.map(({ redisUrl, clickhouseUrl, s3 }) => ({ redisUrl, clickhouseUrl, s3 }))
  project.provide('services', services)
  project.provide('s3', services[0]?.s3 ?? null)
  const endWatches = started.map(watchS3)
  return async () => {
    for (const endWatch of endWatches) endWatch()
    await Promise.all(started.map(running => running.stop()))
  }
}
