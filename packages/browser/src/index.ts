import type { Attributes, Penstock, PenstockOptions, Person, Status } from './options.ts'
import { createPage } from './page.ts'

export type {
  Attributes,
  AttributeValue,
  Penstock,
  PenstockOptions,
  Person,
  RecordingOptions,
  Status,
} from './options.ts'

/** A page has one telemetry, also when its bundles contain this package several times. */
interface PageGlobal {
  _penstock?: Penstock | undefined
}

/**
 * Starts to send what happens on this page: loads and navigations, requests, errors, web vitals, and its recording if that is
 * wanted. Returns the telemetry that runs already if there is one. Where there is no page, as on a server, or with options that
 * cannot work, it returns one that does nothing, and says why on the console: the application must not fail because of it.
 */
export function init(options: PenstockOptions): Penstock {
  const page = globalThis as PageGlobal
  if (page._penstock !== undefined) return page._penstock
  if (typeof window === 'undefined' || typeof document === 'undefined') return NOTHING
  const fault = faultOf(options)
  if (fault !== undefined) {
    console.warn(`[penstock] nothing is sent: ${fault}`)
    return NOTHING
  }
  try {
    page._penstock = createPage(options, () => {
      page._penstock = undefined
    })
    return page._penstock
  } catch (error) {
    console.warn('[penstock] nothing is sent', error)
    return NOTHING
  }
}

function faultOf({ url, key, sampleSessions = 1, recording }: Partial<PenstockOptions>): string | undefined {
  if (typeof url !== 'string' || url === '') return 'url must be a path such as "/telemetry", or a URL'
  if (typeof key !== 'string' || !key.startsWith('pk_')) return 'key must be the public key of a surface (pk_…)'
  const shares = [sampleSessions, recording?.sample ?? 0]
  if (shares.some(share => typeof share !== 'number' || !(share >= 0 && share <= 1))) {
    return 'sampleSessions and recording.sample must be from 0 to 1'
  }
  return undefined
}

/** The telemetry where there is no page. */
const NOTHING: Penstock = {
  sessionId: '',
  identify(_identifier: string, _person?: Person) {},
  captureException(_error: unknown, _attributes?: Attributes) {},
  log() {},
  consent() {},
  async status(): Promise<Status> {
    return { session: '', page: '', sent: 0, acknowledged: 0, stored: 0, waiting: 0, lost: 0, spool: 'memory' }
  },
  async flush() {},
  async stop() {},
}
