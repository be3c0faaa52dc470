import { claimedClickHouse } from '../../clickhouse/claimed-clickhouse.ts'
import { type Adopted, adoptInstallation } from '../../shared/installation/adopt-installation.ts'
import { claimedBucket } from '../../shared/installation/claimed-store.ts'
import type { Examined } from '../command-context.ts'

/** Makes the stores those of one installation. Throws if one does not answer. */
export async function adoptStores({ directory, queues, clickhouse, objects }: Examined): Promise<readonly Adopted[]> {
  return adoptInstallation({
    directory: (await directory()).redis,
    queues: await queues(),
    stores: [claimedClickHouse(clickhouse), claimedBucket(objects)],
  })
}
