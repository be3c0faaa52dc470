import { claimedClickHouse } from '../../clickhouse/claimed-clickhouse.ts'
import { checkInstallation } from '../../shared/installation/check-installation.ts'
import { claimedBucket } from '../../shared/installation/claimed-store.ts'
import { isOpen } from '../../shared/installation/queue-losses.ts'
import type { Examined } from '../command-context.ts'
import { type Finding, found } from './check.ts'

/** Examines whether the stores belong to one installation, and whether the Redis of the queues has lost its data. */
export async function checkStores({ directory, queues, clickhouse, objects }: Examined): Promise<Finding[]> {
  const stores = {
    directory: (await directory()).redis,
    queues: await queues(),
    stores: [claimedClickHouse(clickhouse), claimedBucket(objects)],
    mayClaim: false,
  }
  const { fault, installation } = await checkInstallation(stores, {
    installation: undefined,
    marks: new Map(),
    seen: undefined,
  })
  if (fault !== undefined) return [found.fault(fault)]
  if (installation === undefined)
    return [found.warning('the stores have no installation id: start an edge and workers')]
  const losses = installation.losses.filter(isOpen).map(({ foundAtMs }) => new Date(foundAtMs).toISOString())
  return [
    found.ok(`the stores that answer belong to ${installation.id}`),
    ...losses.map(at =>
      found.fault(`the Redis of the queues has lost its data before ${at}: read docs/operate/lost-queues.md`),
    ),
  ]
}
