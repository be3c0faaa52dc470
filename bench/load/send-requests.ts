import type { PipelineContender } from '../measure/measure-pipeline.ts'
import { CONNECTIONS } from '../measure/measure-stored.ts'
import type { LoadGenerator } from './start-generator.ts'

/** Number of different payloads of a load, at least one for every connection. */
const POOL = 256
/** From this size on, a quarter of the connections is used. More would only make 20 MB and more wait at the edge. */
const LARGE_PAYLOAD_RECORDS = 500

/** A server that takes OTLP over HTTP. */
interface RequestTarget {
  /** Name for error messages. */
  readonly name: string
  readonly port: number
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
}

/** Returns a function that sends a load to the target. It throws on any status other than 200 and 429. */
export function sendRequests(generator: LoadGenerator, target: RequestTarget): PipelineContender['send'] {
  const { name, ...plan } = target
  return async ({ signal, records, data, gzip, recordLimit }, durationMs, onBegin) => {
    const isLarge = records >= LARGE_PAYLOAD_RECORDS
    const connections = isLarge ? CONNECTIONS / 4 : CONNECTIONS
    const pool = isLarge ? POOL / 4 : POOL
    const load = await generator.run(
      {
        ...plan,
        headers: { ...plan.headers, 'content-type': 'application/x-protobuf' },
        connections,
        payload: { signal, spans: records, pool, freshIds: true, ...(data && { data }), ...(gzip && { gzip }) },
        mode: { kind: 'closed' },
        warmUpMs: 0,
        durationMs,
        ...(recordLimit !== undefined && { requestLimit: Math.ceil(recordLimit / records) }),
      },
      edge => {
        if (edge === 'begin') onBegin()
      },
    )
    const { 200: ok = 0, 429: _refused, ...others } = load.statuses
    const unexpected = { ...others, ...load.faults }
    if (Object.keys(unexpected).length > 0) {
      throw new Error(`${name} returned statuses other than 200 and 429: ${JSON.stringify(unexpected)}`)
    }
    return { accepted: ok * records, load }
  }
}
