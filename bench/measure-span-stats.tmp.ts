import { createSpansBatch } from '../workers/otlp/traces/spans.ts'
import { createSpanStatsBatch } from '../workers/span-stats/stats-batch.ts'
import { realisticTracePayload } from './payloads/realistic-trace-payload.ts'
import { tracePayload } from './payloads/trace-payload.ts'

const ORIGIN = { workspaceId: 'ws_1', surfaceId: 'srf_1', receivedAtMs: Date.now() }
const cpu = (work: () => void) => { const b = process.cpuUsage(); work(); const a = process.cpuUsage(b); return (a.user + a.system) / 1e6 }
for (const [name, make] of [['realistic', (i: number) => realisticTracePayload(200, i)], ['uniform', (i: number) => tracePayload({ spans: 200, spansPerTrace: 20, service: `shop-${i % 8}` })]] as const) {
  const batch = createSpansBatch()
  const bodies = Array.from({ length: 250 }, (_, i) => make(i))
  for (let round = 0; round < 6; round++) {
    batch.reset()
    const decode = cpu(() => { for (let k = 0; k < 2; k++) for (const body of bodies) { const r = batch.append({ ...ORIGIN, contentType: 'application/x-protobuf', contentEncoding: 'identity', attributes: '' } as never, body as Buffer); if (!r.ok) throw new Error(r.reason) } })
    let pieces: any
    const count = cpu(() => { pieces = batch.spanStats?.() })
    const stats = createSpanStatsBatch()
    const store = cpu(() => { for (const f of pieces.flat()) stats.append(f, f.body); stats.tables() })
    console.log(name, batch.rows, 'rows; decode s/M', (decode / batch.rows * 1e6).toFixed(3), 'count s/M', (count / batch.rows * 1e6).toFixed(3), 'append s/M', (store / batch.rows * 1e6).toFixed(3), 'keys', stats.rows, 'bytes', pieces.flat().reduce((n: number, f: any) => n + f.body.length, 0))
  }
}
