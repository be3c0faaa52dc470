import { ClickHouseError } from '@clickhouse/client'
import { describe, expect, it } from 'vitest'
import { PermanentError, TransientError } from '../shared/runtime/errors.ts'
import { classifyClickHouseError, quoteIdentifier } from './client.ts'

const fromServer = (code: number, message = 'x') => new ClickHouseError({ code: String(code), type: 'T', message })

describe('classifyClickHouseError', () => {
  it.each([6, 27, 32, 33, 72, 117, 128, 131, 190, 321, 349, 469])(
    'code %i is a fault of the bytes that were inserted',
    code => expect(classifyClickHouseError(fromServer(code))).toBeInstanceOf(PermanentError),
  )

  it.each([
    [16, 'a column that the schema lacks'],
    [53, 'a column of another type than the schema has'],
    [60, 'a table that is not there yet'],
    [81, 'a database that is not there yet'],
    [159, 'a timeout'],
    [202, 'too many queries'],
    [210, 'a network fault'],
    [241, 'no memory'],
    [242, 'a read-only table'],
    [243, 'a full disk'],
    [252, 'too many parts'],
    [999_999, 'a code that nobody knows'],
  ])('code %i, %s, passes', code => {
    expect(classifyClickHouseError(fromServer(code))).toBeInstanceOf(TransientError)
  })

  it('goes by the code and never by the text, which may quote what a client sent', () => {
    expect(classifyClickHouseError(fromServer(241, 'Code: 117. INCORRECT_DATA'))).toBeInstanceOf(TransientError)
    expect(classifyClickHouseError(new Error('Code: 117. DB::Exception: (INCORRECT_DATA)'))).toBeInstanceOf(
      TransientError,
    )
  })

  it('leaves alone what is classified already, and keeps the cause of what is not', () => {
    const permanent = new PermanentError('known')
    expect(classifyClickHouseError(permanent)).toBe(permanent)
    const cause = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
    expect(classifyClickHouseError(cause)).toMatchObject({ name: 'TransientError', cause })
  })
})

it('quotes names so that none ends early', () => {
  expect(quoteIdentifier('spans')).toBe('`spans`')
  expect(quoteIdentifier('a`b\\')).toBe('`a\\`b\\\\`')
})
