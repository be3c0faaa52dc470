import fc from 'fast-check'
import { expect, it } from 'vitest'
import { DAY_MS } from '../../../schemas/units.ts'
import { encodePayload } from '../../../shared/queue/payload-frame.ts'
import { findLanded } from './divide-batch.ts'

const frame = {
  workspaceId: 'ws_1',
  surfaceId: 'srf_1',
  receivedAtMs: 0,
  contentType: 'application/x-protobuf',
  contentEncoding: 'identity',
  attributes: '',
  body: Buffer.alloc(0),
} as const
/** Requests of two days, in one row of the log, which is of the first day. */
const payload = encodePayload([frame, { ...frame, receivedAtMs: DAY_MS }])
const DAYS = [0, 1]

it('finds what has landed of the inserts of two days, whenever another worker sends them meanwhile', async () => {
  const days = fc.constantFrom([0], [1], [0, 1])
  const steps = fc.array(fc.nat(6), { minLength: 3, maxLength: 3 })
  await fc.assert(
    fc.asyncProperty(days, days, steps, async (logs, exceptions, sentBefore) => {
      const rows = { logs, exceptions, ingest_log: [0] }
      const landed = new Set<string>()
      const burned = new Set<string>()
      const turns = sentBefore.values()
      const waiting = Object.entries(rows).flatMap(([table, days]) => days.map(day => `${table} ${day}`))
      // The other worker sends its inserts in turn, and takes those that a burned token has made useless for confirmed.
      const send = (count: number) => {
        for (const part of waiting.splice(0, count)) if (!burned.has(part)) landed.add(part)
      }
      const burnToken = async (table: string) => {
        send(turns.next().value ?? 0)
        for (const day of DAYS) if (!landed.has(`${table} ${day}`)) burned.add(`${table} ${day}`)
        return new Set(DAYS.filter(day => landed.has(`${table} ${day}`)))
      }
      const store = { payload: async () => payload, giveBack() {}, splitJob: async () => true }
      const deps = { store, burnToken, queue: 'logs', addJobs: async () => {} } as const
      const formed = { decoder: 1, tables: { logs: 1, exceptions: 1, ingest_log: 1 }, digest: 0, refused: {} }
      const named = { batchId: 'again', burnedId: 'before', jobIds: ['a'], storedTables: [], formed }

      const found = await findLanded(deps, named)
      send(waiting.length)
      for (const [table, days] of Object.entries(rows)) {
        const truth = days.filter(day => landed.has(`${table} ${day}`))
        expect(days.filter(day => found?.days.get(table)?.has(day))).toEqual(truth)
      }
      expect(found?.isWhole).toBe(landed.has('ingest_log 0'))
    }),
  )
})
