import { type ExportResult, ExportResultCode } from '@opentelemetry/core'
import { expect, it } from 'vitest'
import { createPendingRecords, tracked } from './pending-records.ts'

it('keeps records until they were exported or given up', () => {
  const pending = createPendingRecords<string>(10)
  const answers: ((result: ExportResult) => void)[] = []
  const failures: unknown[] = []
  const inner = {
    export: (_records: string[], done: (result: ExportResult) => void) => void answers.push(done),
    shutdown: async () => {},
    forceFlush: async () => {},
  }
  const exporter = tracked(inner, pending, error => failures.push(error))
  for (const record of ['a', 'b', 'c', 'd']) pending.add(record)
  const results: ExportResult[] = []
  exporter.export(['a', 'b'], result => results.push(result))
  exporter.export(['c'], result => results.push(result))
  answers[0]?.({ code: ExportResultCode.SUCCESS })
  expect(failures).toEqual([])
  const error = new Error('401')
  answers[1]?.({ code: ExportResultCode.FAILED, error })
  expect(failures).toEqual([error])
  expect(results.map(({ code }) => code)).toEqual([ExportResultCode.SUCCESS, ExportResultCode.FAILED])
  expect(pending.take()).toEqual(['d'])
  expect(pending.take()).toEqual([])
})

it('forgets the oldest above its limit', () => {
  const pending = createPendingRecords<number>(3)
  for (let i = 0; i < 100; i++) pending.add(i)
  expect(pending.take()).toEqual([97, 98, 99])
})
