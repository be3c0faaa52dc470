import { expect, it } from 'vitest'
import { createClickHouse } from '../../../clickhouse/client.ts'
import { createObjectStore } from '../../../shared/object-store/object-store.ts'
import { StoreAccess } from '../../../workers/store-access.ts'
import { sharedServices } from '../../support/services/shared-services.ts'

const { clickhouseUrl, s3 } = sharedServices()
const NOWHERE = 'http://127.0.0.1:1'

/** Returns the fault that a worker with these settings finds. */
async function faultWith(
  settings: { url?: string; database?: string; endpoint?: string; bucket?: string; accessKeyId?: string } = {},
): Promise<string | undefined> {
  const { url = clickhouseUrl, database = 'default', ...store } = settings
  const clickhouse = createClickHouse({ url, database })
  const objects = createObjectStore({ ...s3, ...store, requestTimeoutMs: 5_000 })
  const access = new StoreAccess({ clickhouse, objects })
  await access.check()
  access.stop()
  await clickhouse.close()
  objects.close()
  return access.fault
}

it('a worker whose stores accept it, or are only unavailable, is ready', async () => {
  expect(await faultWith()).toBeUndefined()
  expect(await faultWith({ url: NOWHERE, endpoint: NOWHERE })).toBeUndefined()
})

it('a worker with a wrong database, password, bucket or key is not ready, and the reason has no secret', async () => {
  expect(await faultWith({ database: 'no_such' })).toBe(
    'clickhouse refuses the user, the password or the database (code 81)',
  )
  const wrong = clickhouseUrl.replace(/:[^:@/]+@/, ':not-the-password@')
  expect(await faultWith({ url: wrong })).toMatch(/^clickhouse refuses .* \(code 516\)$/)
  expect(await faultWith({ bucket: 'no-such-bucket' })).toMatch(/^the object store refuses .* \(status 404\)$/)
  expect(await faultWith({ accessKeyId: 'nobody' })).toMatch(/^the object store refuses .* \(status 40[13]\)$/)
})
