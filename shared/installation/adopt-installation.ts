import type { Installation } from '../../schemas/records/installation.ts'
import { changeInstallation, readInstallation } from '../directory/installation-record.ts'
import { readQueueMarks, writeQueueMark } from '../queue/registry/queue-marks.ts'
import type { CheckedStores, StoreName } from './check-installation.ts'
import { newInstallation } from './queue-losses.ts'

/** The id of a store before and after it was adopted. */
export interface Adopted {
  readonly store: StoreName
  /** Undefined if the store had none. */
  readonly before: string | undefined
  readonly after: string
}

/**
 * Makes all stores those of one installation, after a move or a restore that has not brought their ids along: writes the id of the
 * directory into the others. A directory without an id takes that of another store. Safe to repeat, and to run beside all
 * processes, which then work within a second. The epochs of the queues stay as they are, so that no loss is hidden. Throws if a
 * store does not answer.
 */
export async function adoptInstallation({
  directory,
  queues,
  stores,
}: Omit<CheckedStores, 'mayClaim'>): Promise<readonly Adopted[]> {
  const before = await readInstallation(directory)
  const { numbers: registered } = await queues.read()
  const numbers = [...new Set([...registered, ...Object.keys(before?.epochs ?? {}).map(Number)])]
  const marks = await readQueueMarks(queues, numbers)
  const claims = await Promise.all(stores.map(async store => ({ store, claim: await store.read() })))
  const markIds = [...new Set([...marks.values()].map(({ installation }) => installation))]
  const known = markIds[0] ?? claims.find(({ claim }) => claim !== undefined)?.claim?.id
  const after = (await changeInstallation(directory, current => {
    const names = [...new Set([...(current?.stores ?? []), ...stores.map(({ name }) => name)])]
    if (current !== undefined) return { ...current, stores: names }
    const epochs = Object.fromEntries([...marks].map(([number, { epoch }]) => [number, epoch]))
    return { ...newInstallation(known), stores: names, epochs }
  })) as Installation
  const { id } = after
  for (const [number, mark] of marks) {
    if (mark.installation !== id) {
      await writeQueueMark(queues, number, { ...mark, installation: id }, { replace: true })
    }
  }
  for (const { store, claim } of claims) {
    if (claim?.id !== id) await store.replace({ id, epochs: after.epochs })
  }
  return [
    { store: 'directory', before: before?.id, after: id },
    { store: 'queues', before: markIds.length === 0 ? undefined : markIds.join(' and '), after: id },
    ...claims.map(({ store, claim }) => ({ store: store.name, before: claim?.id, after: id })),
  ]
}
