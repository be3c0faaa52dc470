import { createExceptionsBatch } from '../../../workers/exceptions/exceptions-batch.ts'
import type { OtlpBatch } from '../../../workers/otlp/protobuf/otlp-batch.ts'
import type { RowBatch } from '../../../workers/sink/row-batch.ts'

const FRAME = {
  ...({ contentType: 'application/octet-stream', contentEncoding: 'identity', attributes: '' } as const),
  body: Buffer.alloc(0),
}

/** Has a batch of spans or logs make the rows of its exceptions too, as the queue `exceptions` makes them. */
export function withExceptions(batch: OtlpBatch): OtlpBatch & Pick<RowBatch, 'stackRequests'> {
  const exceptions = createExceptionsBatch()
  const append = batch.append.bind(batch)
  const tables = batch.tables.bind(batch)
  const reset = batch.reset.bind(batch)
  return Object.assign(batch, {
    append(...[source, body, limitBytes]: Parameters<OtlpBatch['append']>) {
      const records = batch.passedOn?.bytes
      const start = records?.length ?? 0
      const result = append(source, body, limitBytes)
      if (records !== undefined && records.length > start) {
        const { ok } = exceptions.append({ ...source, ...FRAME }, records.bytes.subarray(start, records.length))
        if (!ok) throw new Error('the records of exceptions are refused')
      }
      return result
    },
    tables: () => [...tables(), ...exceptions.tables()],
    reset() {
      reset()
      exceptions.reset()
    },
    stackRequests: () => exceptions.stackRequests?.() ?? [],
  })
}
