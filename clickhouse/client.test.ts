import { ClickHouseError } from '@clickhouse/client'
import { describe, expect, it } from 'vitest'
import { PermanentError, TransientError } from '../shared/runtime/errors.ts'
import { classifyClickHouseError, clickHouseCode, clickHouseText, createClickHouse } from './client.ts'
import { quoteIdentifier } from './quote.ts'

const fromServer = (code: number, message = 'x') => new ClickHouseError({ code: String(code), type: 'T', message })

describe('classifyClickHouseError', () => {
  it.each([6, 27, 32, 33, 72, 117, 128, 131, 190, 321, 349, 469])(
    'classifies code %i as an error of the inserted bytes',
    code => expect(classifyClickHouseError(fromServer(code))).toBeInstanceOf(PermanentError),
  )

  it.each([
    [16, 'an unknown column'],
    [53, 'a column of another type'],
    [60, 'a missing table'],
    [81, 'a missing database'],
    [159, 'a timeout'],
    [202, 'too many queries'],
    [210, 'a network error'],
    [241, 'no memory'],
    [242, 'a read-only table'],
    [243, 'a full disk'],
    [252, 'too many parts'],
    [999_999, 'an unknown code'],
  ])('classifies code %i (%s) as transient', code => {
    expect(classifyClickHouseError(fromServer(code))).toBeInstanceOf(TransientError)
  })

  it('uses the code and never the message, which may quote what a client sent', () => {
    expect(classifyClickHouseError(fromServer(241, 'Code: 117. INCORRECT_DATA'))).toBeInstanceOf(TransientError)
    expect(classifyClickHouseError(new Error('Code: 117. DB::Exception: (INCORRECT_DATA)'))).toBeInstanceOf(
      TransientError,
    )
  })

  it('keeps the text of the server, which may quote values, out of the message', () => {
    const error = classifyClickHouseError(fromServer(6, "Cannot parse input: expected '5' before: 'secret value'"))
    expect(error.message).toBe('ClickHouse 6 T')
    expect(clickHouseText(error)).toContain('secret value')
    expect(clickHouseCode(error)).toBe('6')
    expect(clickHouseCode(classifyClickHouseError(new Error('connect ECONNREFUSED')))).toBeUndefined()
  })

  it('names what is missing of the schema, which may be the target of a view and not the table of the insert', () => {
    const text = "Target table 'p.trace_buckets' of view 'p.v' doesn't exists. To ignore this view, and so on"
    expect(classifyClickHouseError(fromServer(60, text)).message).toBe(
      "ClickHouse 60 T: Target table 'p.trace_buckets' of view 'p.v' doesn't exists",
    )
  })

  it('returns classified errors unchanged and keeps the cause of others', () => {
    const permanent = new PermanentError('known')
    expect(classifyClickHouseError(permanent)).toBe(permanent)
    const cause = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
    expect(classifyClickHouseError(cause)).toMatchObject({ name: 'TransientError', cause })
  })
})

it.each([
  ['http://clickhouse:8123', true],
  ['https://10.0.0.7:8443', true],
  ['http://127.example.com:8123', true],
  ['http://127.0.0.1:8123', false],
  ['http://127.1:8123', false],
  ['http://localhost:8123', false],
  ['http://[::1]:8123', false],
])('compresses inserts unless the server is on this machine: %s', async (url, compressesInserts) => {
  const client = createClickHouse({ url })
  expect(client.compressesInserts).toBe(compressesInserts)
  await client.close()
})

it('escapes backticks and backslashes in names', () => {
  expect(quoteIdentifier('spans')).toBe('`spans`')
  expect(quoteIdentifier('a`b\\')).toBe('`a\\`b\\\\`')
})
