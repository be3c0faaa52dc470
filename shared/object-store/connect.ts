import type { ObjectStoreSettings } from '../runtime/config.ts'
import { createObjectStore } from './object-store.ts'
import type { ObjectStore, ObserveCall } from './types.ts'

/** Creates the client of the configured bucket. A request without an answer fails after `requestTimeoutMs`. */
export function connectObjectStore(
  settings: ObjectStoreSettings,
  requestTimeoutMs = 30_000,
  observe?: ObserveCall,
): ObjectStore {
  return createObjectStore({
    endpoint: settings.S3_ENDPOINT,
    region: settings.S3_REGION,
    bucket: settings.S3_BUCKET,
    accessKeyId: settings.AWS_ACCESS_KEY_ID,
    secretAccessKey: settings.AWS_SECRET_ACCESS_KEY,
    requestTimeoutMs,
    observe,
  })
}
