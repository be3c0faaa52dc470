import { randomBytes } from 'node:crypto'
import { Redis } from 'ioredis'
import { sealTarget } from '../../alerts/calling/targets.ts'
import { Sealing } from '../../alerts/delivery/sealing.ts'
import { DEFAULT_ALERT_RULES } from '../../schemas/records/alerts.ts'
import { createDirectory } from '../../shared/directory/directory.ts'
import { type BenchSurface, DIRECTORY_DATABASE, issueSurface } from './start-product.ts'
import type { BenchRedis } from './start-stores.ts'

/** Settings with which workers watch and deliver, also to receivers on this machine. */
export function alertSettings() {
  return {
    DELIVERY_KEY: randomBytes(32).toString('base64'),
    DELIVERY_ALLOWED_RECEIVERS: '127.0.0.0/8',
    PUBLIC_URL: 'https://penstock.example',
  }
}

/** Creates workspaces of one surface each with a webhook and the rules of every new workspace, and returns their surfaces. */
export async function putAlertingWorkspaces(
  redis: BenchRedis,
  count: number,
  { url, key }: { readonly url: string; readonly key: string },
): Promise<BenchSurface[]> {
  const directory = new Redis(redis.url(DIRECTORY_DATABASE))
  try {
    const store = createDirectory(directory)
    const sealing = new Sealing({ key })
    const surfaces: BenchSurface[] = []
    for (let i = 0; i < count; i++) {
      const surface = await issueSurface(redis)
      const { workspaceId } = surface
      const id = `rcv_${randomBytes(10).toString('hex')}`
      const secrets = [`whsec_${randomBytes(24).toString('base64')}`]
      const sealed = sealTarget(sealing, workspaceId, id, { channel: 'webhook', url, secrets })
      const receiver = { id, name: 'bench', channel: 'webhook', address: url, sealed } as const
      const receivers = [{ ...receiver, createdAt: new Date().toISOString() }]
      const author = { by: null, now: Date.now() }
      await store.replaceAlerts({ workspaceId, revision: 0, receivers, rules: [...DEFAULT_ALERT_RULES] }, author)
      surfaces.push(surface)
    }
    return surfaces
  } finally {
    directory.disconnect()
  }
}
