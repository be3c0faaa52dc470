import { expect, it } from 'vitest'
import { rankOf } from '../../clickhouse/tables/finding-moves-table.ts'
import { NO_RULES } from '../../shared/grouping/rules.ts'
import { type StoreStacksDeps, storeStacks } from './store-stacks.ts'

const OWNER = { workspaceId: 'ws_1', surfaceId: 'srf_1' }

it('moves variants after their frames are stored, and then compares the earliest rules', async () => {
  const done: unknown[] = []
  const deps: StoreStacksDeps = {
    rules: { of: async () => NO_RULES, stored: async revisions => void done.push([...revisions]) },
    retryUntilStopped: (_, work) => work(),
    insertFrames: async (_, token) => void done.push(token),
    insertMoves: async rows => void done.push(rows.map(({ variantId }) => variantId)),
  }
  const moves = [9, 7, 8].map(revision => {
    return { workspaceId: 'ws_1', variantId: `v${revision}`, findingId: 'mapped', rank: rankOf(1, 0, revision) }
  })
  await storeStacks(deps, OWNER, { rows: [], moves }, 'token')
  expect(done).toEqual(['token', ['v9', 'v7', 'v8'], [['ws_1', 7]]])
  done.length = 0
  await storeStacks(deps, OWNER, { rows: [], moves: [] }, 'token')
  expect(done).toEqual(['token'])
})
