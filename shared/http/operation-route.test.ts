import { expect, test } from 'vitest'
import type { RoutedOperation } from '../../schemas/http/operation.ts'
import { KIB, MIB } from '../../schemas/units.ts'
import { operationRoute } from './operation-route.ts'

const reading: RoutedOperation = {
  method: 'GET',
  path: '/v3/things/:thingId',
  service: 'gateway',
  credentials: ['sessionToken'],
}
const writing: RoutedOperation = { ...reading, method: 'POST', service: 'operation', body: { limitBytes: 256 * KIB } }
const accept = () => ({ status: 200 })

test('takes method, path and CORS from the operation', () => {
  expect(operationRoute(reading, { accept })).toMatchObject({ method: 'GET', path: '/v3/things/:thingId', cors: false })
  expect(operationRoute({ ...reading, cors: true }, { accept }).cors).toBe(true)
})

test('allows no body unless the operation has one', () => {
  expect(operationRoute(reading, { accept })).toMatchObject({ bodyLimitBytes: 0, overLimit: undefined })
  expect(operationRoute(writing, { accept }).bodyLimitBytes).toBe(262_144)
})

test('refuses a body over the limit in the name of the service of the operation', () => {
  expect(operationRoute(writing, { accept }).overLimit).toEqual({
    code: 'REQUEST_INVALID',
    status: 413,
    message: 'the body is over the limit of 256 KiB',
    service: 'operation',
  })
})

test('refuses with the code and the advice of the operation where it has its own', () => {
  const body = {
    limitBytes: MIB,
    overLimitCode: 'REPLAY_UPLOAD_REJECTED',
    overLimitAdvice: 'send less',
  } as const
  expect(operationRoute({ ...writing, body }, { accept }).overLimit).toEqual({
    code: 'REPLAY_UPLOAD_REJECTED',
    status: 413,
    message: 'the body is over the limit of 1 MiB; send less',
    service: 'frontier-runtime',
  })
})
