import { expect, it } from 'vitest'
import { errorFields, PermanentError, TransientError } from './errors.ts'

it('gives every fault a stable code, which may be more specific than its class', () => {
  expect(new PermanentError('refused').code).toBe('PENSTOCK_PERMANENT')
  expect(new TransientError('unavailable').code).toBe('PENSTOCK_TRANSIENT')
  const cause = new Error('aborted')
  const stopped = new TransientError('stopped', { cause, code: 'PENSTOCK_STOPPING' })
  expect([stopped.code, stopped.cause]).toEqual(['PENSTOCK_STOPPING', cause])
})

it('returns the text and the code of anything that was thrown', () => {
  expect(errorFields(new TransientError('unavailable'))).toEqual({
    error: 'TransientError: unavailable',
    code: 'PENSTOCK_TRANSIENT',
  })
  expect(errorFields(Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }))).toEqual({
    error: 'Error: refused',
    code: 'ECONNREFUSED',
  })
  expect(errorFields('text')).toEqual({ error: 'text' })
})
