import { expect, it } from 'vitest'
import { HOUR_MS } from '../../schemas/units.ts'
import { RequestTally } from './request-tallies.ts'

const counted = (tally: RequestTally) =>
  tally.take().map(({ member, hour, received, acknowledged, refused }) => ({
    ...{ member, hour, received, acknowledged },
    refused: Object.fromEntries(refused ?? []),
  }))

it('counts by the hour of the commit, else by the present hour, also when hours alternate', () => {
  const tally = new RequestTally(() => 7 * HOUR_MS)
  for (let i = 0; i < 3; i++) {
    tally.ended('ws_1/srf_1', 'acknowledged', 6 * HOUR_MS)
    tally.ended('ws_1/srf_1', 429, undefined)
  }
  expect(counted(tally)).toEqual([
    { member: 'ws_1/srf_1', hour: 7, received: 3, acknowledged: 0, refused: { 429: 3 } },
    { member: 'ws_1/srf_1', hour: 6, received: 3, acknowledged: 3, refused: {} },
  ])
  expect(counted(tally)).toEqual([])
})

it('counts the surfaces beyond its bound together, under a name of their own', () => {
  const tally = new RequestTally(() => 0, 2)
  for (let i = 0; i < 1_000; i++) tally.ended(`ws_1/srf_${i}`, i % 2 === 0 ? 413 : 'acknowledged', i % 3 ? 0 : HOUR_MS)
  const all = counted(tally)
  expect(all.map(({ member, hour }) => `${member} ${hour}`).sort()).toEqual([
    '*/* 0',
    '*/* 1',
    'ws_1/srf_0 1',
    'ws_1/srf_1 0',
  ])
  expect(all.reduce((sum, { received }) => sum + received, 0)).toBe(1_000)
  tally.ended('ws_1/srf_9', 200, undefined)
  expect(counted(tally)).toMatchObject([{ member: 'ws_1/srf_9' }])
})

it('counts requests over a quota besides their refusal', () => {
  const tally = new RequestTally(() => 7 * HOUR_MS)
  tally.overQuota('ws_1/srf_1')
  tally.ended('ws_1/srf_1', 429, undefined)
  expect(tally.take()).toMatchObject([{ hour: 7, received: 1, overQuota: 1 }])
})
