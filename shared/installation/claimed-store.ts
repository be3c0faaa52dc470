import type { ClaimedStoreName, Installation } from '../../schemas/records/installation.ts'
import { KIB } from '../../schemas/units.ts'
import { parseJson } from '../json/parse-json.ts'
import { INSTALLATION_KEY } from '../object-store/object-keys.ts'
import type { ObjectStore } from '../object-store/types.ts'
import { PermanentError } from '../runtime/errors.ts'

/** An installation as a store names it. */
export interface Claim extends Pick<Installation, 'id'> {
  /** Epochs of the queues as far as the store knows them (`Installation.epochs`). */
  readonly epochs?: Installation['epochs']
}

/** A store that contains the id of its installation. Each call throws if the store does not answer. */
export interface ClaimedStore {
  readonly name: ClaimedStoreName
  /** Returns undefined if the store has no id. */
  read(): Promise<Claim | undefined>
  /** Writes the id, unless the store has one. */
  claim(claim: Required<Claim>): Promise<void>
  /** Writes the id, whatever the store has. */
  replace(claim: Required<Claim>): Promise<void>
}

const LIMIT_BYTES = 4 * KIB
const OPTIONS = { contentType: 'application/json' }

/** Returns the bucket as a store that contains the id of its installation, in one object. */
export function claimedBucket(objects: Pick<ObjectStore, 'get' | 'put' | 'putIfAbsent'>): ClaimedStore {
  const bodyOf = ({ id }: Claim) => Buffer.from(`${JSON.stringify({ id })}\n`)
  return {
    name: 'bucket',
    async read() {
      const object = await objects.get(INSTALLATION_KEY, LIMIT_BYTES)
      if (object === undefined) return undefined
      const read = parseJson(object.body.toString()) as { readonly id?: unknown } | undefined
      if (typeof read?.id !== 'string') throw new PermanentError(`the object ${INSTALLATION_KEY} has no id`)
      return { id: read.id }
    },
    async claim(claim) {
      await objects.putIfAbsent(INSTALLATION_KEY, bodyOf(claim), OPTIONS)
    },
    replace: claim => objects.put(INSTALLATION_KEY, bodyOf(claim), OPTIONS),
  }
}
