import type { Redis } from 'ioredis'
import { type Member, memberSchema } from '../../../schemas/records/directory.ts'
import { type Author, type ChangeOf, writeChange } from '../changes/change-log.ts'
import { decideOnce } from '../creations.ts'
import { directoryKeys as keys, parseRecord } from '../record.ts'
import { type Command, commitIf, type Decision, type Guard } from '../transaction.ts'
import { writeMember } from '../writes.ts'
import { decideKeys, type KeysOutcome, type MemberKey } from './member-keys.ts'

/** Greatest number of members of a workspace that are added by members. Concurrent requests may exceed it by their number. */
export const MEMBERS_MAX = 1_000

/**
 * A member after a change, undefined if removed, with its entry in the log and what becomes of its keys; or the reason why it
 * stays as it is.
 */
export type MemberDecision<R> =
  | { readonly to: Member | undefined; readonly change: ChangeOf; readonly keys?: KeysOutcome }
  | { readonly refused: R }

/** A change that was made, with the keys that were passed on or revoked. */
interface ChangedMember {
  readonly keys: readonly MemberKey[]
}

/** Changes the members of a workspace on behalf of its members. */
export interface MemberChanges {
  /**
   * Changes, adds or removes a member, in one step with its entry in the log. `decide` is called again if the member changes
   * meanwhile. Refuses to remove the last member who can change members, and to add one beyond MEMBERS_MAX.
   */
  changeMember<R>(
    member: Pick<Member, 'workspaceId' | 'userId'>,
    decide: (before: Member | undefined) => MemberDecision<R>,
    author: Author,
  ): Promise<R | ChangedMember | 'last_manager' | 'too_many_members'>
}

/** Creates the part of the directory through which members change members. */
export function createMemberChanges(redis: Redis): MemberChanges {
  return {
    changeMember<R>(member: ChangedId, decide: (before: Member | undefined) => MemberDecision<R>, author: Author) {
      const decidedBefore: MemberKey[] = []
      return decideOnce<R | ChangedMember | 'last_manager' | 'too_many_members'>(redis, author.once, () =>
        decideMember(redis, member, decide, author, decidedBefore),
      )
    },
  }
}

type ChangedId = Pick<Member, 'workspaceId' | 'userId'>

/** Decides how a change would change the current state. `decidedBefore` gets the keys that are more than one step decides on. */
async function decideMember<R>(
  redis: Redis,
  { workspaceId, userId }: ChangedId,
  decide: (before: Member | undefined) => MemberDecision<R>,
  author: Author,
  decidedBefore: MemberKey[],
): Promise<Decision<R | ChangedMember | 'last_manager' | 'too_many_members'>> {
  const key = keys.member(workspaceId, userId)
  const managers = keys.managers(workspaceId)
  const [count, text] = [await redis.scard(managers), await redis.get(key)]
  const stored = text === null ? undefined : parseRecord(key, text, memberSchema)
  // Redis keys are UTF-8, in which all lone surrogates look alike, so the id of the record is compared too.
  const before = stored?.userId === userId ? stored : undefined
  const decision = decide(before)
  if ('refused' in decision) return { result: decision.refused }
  const { to, change, keys: outcome } = decision
  // Operators may do what members must not.
  const isOperator = author.by === null
  if (!isOperator && before === undefined && (await redis.zcard(keys.members(workspaceId))) >= MEMBERS_MAX) {
    return { result: 'too_many_members' }
  }
  const guards: Guard[] = [['GET', key, text ?? '']]
  if (!isOperator && isManager(before) && !isManager(to)) {
    if (count <= 1) return { result: 'last_manager' }
    guards.push(['SCARD', managers, String(count)])
  }
  const decideStep = () => outcome && decideKeys(redis, { workspaceId, userId }, outcome, author)
  let made = await decideStep()
  for (; made?.hasMore; made = await decideStep()) {
    if (await commitIf(redis, { guards: [...guards, ...made.guards], commands: made.commands })) {
      decidedBefore.push(...made.keys)
    }
  }
  const commands = to === undefined ? removal(workspaceId, userId) : writeMember(to).commands
  const logged = writeChange(workspaceId, author, change)
  return {
    transaction: {
      guards: [...guards, ...(made?.guards ?? [])],
      commands: [...commands, ...(made?.commands ?? []), ...logged],
    },
    result: { keys: [...decidedBefore, ...(made?.keys ?? [])] },
  }
}

function isManager(member: Member | undefined): boolean {
  return member?.permissions.includes('org:members:write') === true
}

function removal(workspaceId: string, userId: string): Command[] {
  return [
    ['DEL', keys.member(workspaceId, userId)],
    ['ZREM', keys.members(workspaceId), userId],
    ['SREM', keys.managers(workspaceId), userId],
  ]
}
