import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { isProduct } from './code.ts'
import { ROOT, trackedFiles } from './prose.ts'

/**
 * Why no text of a client is written unscrubbed. `by rules`: it is scrubbed there. `of scrubbed`: it derives from scrubbed texts.
 * `none`: it has ids, numbers and texts of the service alone. `code`: source maps and manifests, which no rule is about.
 * `when read`: requests as they were sent, which are scrubbed when they are read.
 */
type Reason = 'by rules' | 'of scrubbed' | 'none' | 'code' | 'when read'

/** Every file of the workers that fills a table or writes an object. */
const WRITERS: Readonly<Record<string, Reason>> = {
  'workers/dead-letters/store-dead-letters.ts': 'when read',
  'workers/exceptions/exceptions-batch.ts': 'of scrubbed',
  'workers/json-rows.ts': 'by rules',
  'workers/otlp/logs/logs.ts': 'by rules',
  'workers/otlp/metrics/metrics.ts': 'by rules',
  'workers/otlp/traces/spans.ts': 'by rules',
  'workers/pools/start-symbolication.ts': 'of scrubbed',
  'workers/replay/store-chunk.ts': 'by rules',
  'workers/sink/batch.ts': 'none',
  'workers/source-maps/complete-release.ts': 'code',
  'workers/source-maps/map-contents.ts': 'code',
  'workers/source-maps/store-source-maps.ts': 'code',
  'workers/span-stats/stats-batch.ts': 'of scrubbed',
  'workers/upkeep/failures/judge-failures.ts': 'of scrubbed',
  'workers/upkeep/start-upkeep.ts': 'of scrubbed',
}

const WRITES = /new [A-Z]\w*Table\(|\bobjects\.(?:put|putIfAbsent)\(/
const MAKERS = /\bcreate(?:Spans|Logs|Metrics|Sessions)Batch\(?/

const files = trackedFiles(ROOT).filter(file => file.startsWith('workers/') && isProduct(file))
const textOf = (file: string) => readFileSync(ROOT + file, 'utf8')

it('each writer of the workers says why it writes no secret', () => {
  expect(files.length).toBeGreaterThan(100)
  expect(files.filter(file => WRITES.test(textOf(file))).sort()).toEqual(Object.keys(WRITERS).sort())
})

it('rows of clients are made by the pools alone, which scrub them', () => {
  const makers = files.filter(file => MAKERS.test(textOf(file)) && WRITERS[file] === undefined)
  expect(makers).toEqual(['workers/pools/table.ts'])
  const pools = textOf('workers/pools/table.ts')
  expect(pools).toMatch(/return ruledRecords\(acceptJson\(signal, rows, transcoder\), rows, deps\)/)
  expect(pools.match(/create(?:Spans|Logs|Metrics)Batch, deps\)/g)).toHaveLength(3)
  expect(pools).toContain('createSessionsBatch(deps.scrubbing)')
})
