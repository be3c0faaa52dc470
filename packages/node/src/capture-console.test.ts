import { type Logger, type LogRecord, SeverityNumber } from '@opentelemetry/api'
import { expect, it } from 'vitest'
import { captureConsole } from './capture-console.ts'

function setUp(emit: (record: LogRecord) => void = () => {}) {
  const written: unknown[][] = []
  const records: LogRecord[] = []
  const write = (...args: unknown[]) => void written.push(args)
  const target = { debug: write, log: write, info: write, warn: write, error: write }
  const logger: Logger = {
    enabled: () => true,
    emit: record => {
      records.push(record)
      emit(record)
    },
  }
  captureConsole(target, logger)
  return { target, written, records }
}

it('writes as ever, and makes a record of the text with the severity of the method', () => {
  const { target, written, records } = setUp()
  target.log('order %d of %o', 17, 'Zoë')
  target.warn({ a: [1] })
  expect(written).toEqual([['order %d of %o', 17, 'Zoë'], [{ a: [1] }]])
  expect(records).toEqual([
    { severityNumber: SeverityNumber.INFO, severityText: 'INFO', body: "order 17 of 'Zoë'" },
    { severityNumber: SeverityNumber.WARN, severityText: 'WARN', body: '{ a: [ 1 ] }' },
  ])
})

it('has the exception of an error among the arguments', () => {
  const { target, records } = setUp()
  target.error('failed:', new RangeError('too many'))
  expect(records[0]).toMatchObject({
    severityText: 'ERROR',
    attributes: { 'exception.type': 'RangeError', 'exception.message': 'too many' },
  })
})

it('makes no record of what is written while a record is made', () => {
  const { target, written, records } = setUp(() => target.error('the exporter complains'))
  target.log('one')
  expect(written).toHaveLength(2)
  expect(records).toHaveLength(1)
})

it('limits the body', () => {
  const { target, records } = setUp()
  target.log('x'.repeat(1_000_000))
  expect(String(records[0]?.body).length).toBe(65_536)
})
