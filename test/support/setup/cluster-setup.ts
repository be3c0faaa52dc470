import type { TestProject } from 'vitest/node'
import { startClickHouseCluster } from '../cluster/clickhouse-cluster.ts'
import { startServices } from '../services/services.ts'

/** Starts Redis, S3 and two shards of ClickHouse for each vitest worker of the project `cluster`. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const workers = Array.from({ length: project.config.maxWorkers })
  const started = await Promise.all(
    workers.map(async () => ({ services: await startServices(), cluster: await startClickHouseCluster() })),
  )
  const services = started.map(({ services: { redisUrl, s3 }, cluster }) => ({
    redisUrl,
    s3,
    clickhouseUrl: cluster.url,
  }))
  project.provide('services', services)
  return async () => {
    await Promise.all(started.flatMap(({ services, cluster }) => [services.stop(), cluster.stop()]))
  }
}
