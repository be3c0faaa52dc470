import { expect } from 'vitest'
import { until } from '../../until.ts'
import type { SdkStage } from './sdk-stage.ts'

/** A page that ends at once may lose what happened in this time before. */
const LOST_MS = 2_000

/** What a page has noted: the id of each mark → its time, Unix ms. The page makes marks with `?marks` (app.ts). */
export type Marks = Map<string, number>

/** Keeps the mark that a line of the console states. */
export function keepMark(marks: Marks, line: string): void {
  const [, id, time] = /^mark (\S+) (\d+)$/.exec(line) ?? []
  if (id !== undefined) marks.set(id, Number(time))
}

/** Returns the marks that were older than two seconds when the last one was made. */
export function olderMarks(marks: Marks): string[] {
  const endedAtMs = Math.max(...marks.values())
  return [...marks].filter(([, atMs]) => atMs < endedAtMs - LOST_MS).map(([mark]) => mark)
}

/** Expects that these marks become stored. */
export async function expectStored(stage: SdkStage, expected: readonly string[], deadlineMs: number): Promise<void> {
  const missing = async () => {
    const stored = await storedMarks(stage)
    return expected.filter(mark => !stored.has(mark))
  }
  await until('all marks are stored', async () => (await missing()).length === 0, { deadlineMs }).catch(async () =>
    expect(await missing()).toEqual([]),
  )
}

/** Expects that no mark is stored twice. */
export async function expectNoneTwice(stage: SdkStage): Promise<void> {
  expect([...(await storedMarks(stage))].filter(([, n]) => n !== 1)).toEqual([])
}

async function storedMarks({ rows }: SdkStage): Promise<ReadonlyMap<string, number>> {
  const query = `SELECT extract(body, '^mark (.+)$') AS mark, count() AS n FROM logs WHERE body LIKE 'mark %' GROUP BY mark`
  const found = await rows<{ mark: string; n: number | string }>(query)
  return new Map(found.map(({ mark, n }) => [mark, Number(n)]))
}
