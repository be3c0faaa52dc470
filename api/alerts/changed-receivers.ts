import { isDeepStrictEqual } from 'node:util'
import { openTarget, sealTarget, type Target } from '../../alerts/calling/targets.ts'
import type { Sealing } from '../../alerts/delivery/sealing.ts'
import { createWebhookKeyPair, createWebhookSecret, publicKeyOf } from '../../alerts/delivery/standard-webhooks.ts'
import { type RequestedReceiver, targetFieldOf } from '../../schemas/http/alerts/receivers.ts'
import type { Receiver } from '../../schemas/records/alerts.ts'
import { newId } from '../../shared/directory/directory.ts'
import { invalid, type Outcome } from '../http/outcome.ts'

/** Receivers of a request, and those that its workspace has. */
interface ReceiversChange {
  readonly workspaceId: string
  readonly requested: readonly RequestedReceiver[]
  readonly current: readonly Receiver[]
  readonly sealing: Sealing | undefined
  readonly at: string
}

/** Receivers as they are stored, and the secrets that were made for them, by id. */
interface ChangedReceivers {
  readonly receivers: Receiver[]
  readonly secrets: ReadonlyMap<string, string>
}

/**
 * Returns the receivers that a request makes of those of its workspace. One with a known name and the same channel stays, with what
 * the request does not change.
 */
export function changedReceivers({ requested, current, ...change }: ReceiversChange): Outcome<ChangedReceivers> {
  const receivers: Receiver[] = []
  const secrets = new Map<string, string>()
  for (const [i, wanted] of requested.entries()) {
    const known = current.find(({ name, channel }) => name === wanted.name && channel === wanted.channel)
    const target = targetOf(wanted, known, change)
    if (target === undefined)
      return invalid(`receivers[${i}].${targetFieldOf(wanted.channel)} is required for a new receiver`)
    const { receiver, secret } = changed(wanted, known, target, change)
    receivers.push(receiver)
    if (secret !== undefined) secrets.set(receiver.id, secret)
  }
  return { ok: true, value: { receivers, secrets } }
}

type Change = Pick<ReceiversChange, 'workspaceId' | 'sealing' | 'at'>

/** Where a receiver is reached from now on: `same` if that does not change, undefined if the request lacks it. */
type ChangedTarget = { readonly target: Target; readonly secret?: string } | 'same' | undefined

function targetOf(
  { channel, url, routingKey, to, rotateSecret, signature }: RequestedReceiver,
  known: Receiver | undefined,
  { sealing, workspaceId }: Change,
): ChangedTarget {
  if (channel === 'pagerduty') return routingKey === undefined ? known && 'same' : { target: { channel, routingKey } }
  if (channel === 'email') return to === undefined ? known && 'same' : { target: { channel, to: [...to] } }
  if (channel !== 'webhook') return url === undefined ? known && 'same' : { target: { channel, url } }
  if (known === undefined) return url === undefined ? undefined : signedTarget(signature, url)
  if ((url === undefined && !rotateSecret && signature === undefined) || sealing === undefined) return 'same'
  const before = openTarget(sealing, workspaceId, known)
  if (before.channel !== channel) return undefined
  const next = url ?? before.url
  const current = known.publicKey === undefined ? 'hmac' : 'ed25519'
  const wanted = signature ?? current
  if (!rotateSecret && wanted === current) return { target: { ...before, url: next } }
  return signedTarget(wanted, next, before.secrets[0])
}

/** Returns a webhook with a new secret, which signs beside the one before it. That of Ed25519 is not shown. */
function signedTarget(signature: 'hmac' | 'ed25519' = 'hmac', url: string, before?: string): ChangedTarget {
  const secret = signature === 'ed25519' ? createWebhookKeyPair() : createWebhookSecret()
  const target = { channel: 'webhook' as const, url, secrets: before === undefined ? [secret] : [secret, before] }
  return signature === 'ed25519' ? { target } : { target, secret }
}

function changed(
  { name, channel, disabled, actions }: RequestedReceiver,
  known: Receiver | undefined,
  changedTarget: Exclude<ChangedTarget, undefined>,
  { workspaceId, sealing, at }: Change,
): { readonly receiver: Receiver; readonly secret?: string | undefined } {
  const id = known?.id ?? newId('rcv')
  const kept = known ?? { id, name, channel, createdAt: at, address: '', sealed: '' }
  const { disabled: before, actions: acted = true, ...rest } = kept
  const off =
    disabled === undefined ? before : disabled ? (before ?? { at, reason: 'a member has disabled it' }) : undefined
  const receiver = { ...rest, ...(!(actions ?? acted) && { actions: false }), ...(off && { disabled: off }) }
  if (sealing === undefined) return { receiver }
  if (changedTarget === 'same') {
    // A target that the previous key has sealed is sealed again, so that this key can be removed.
    if (known === undefined || sealing.isCurrent(known.sealed)) return { receiver }
    return {
      receiver: { ...receiver, sealed: sealTarget(sealing, workspaceId, id, openTarget(sealing, workspaceId, known)) },
    }
  }
  const { target, secret } = changedTarget
  // A request that is repeated changes nothing.
  if (known && sealing.isCurrent(known.sealed) && isDeepStrictEqual(openTarget(sealing, workspaceId, known), target))
    return { receiver }
  const sealed = sealTarget(sealing, workspaceId, id, target)
  const { publicKey: _, ...others } = receiver
  const publicKey = target.channel === 'webhook' ? publicKeyOf(target.secrets[0] ?? '') : undefined
  return { receiver: { ...others, address: addressOf(target), sealed, ...(publicKey && { publicKey }) }, secret }
}

/** Returns the part of a target that may be shown. The secrets of Slack and Teams are paths, and a query may contain one. */
function addressOf(target: Target): string {
  switch (target.channel) {
    case 'webhook': {
      const { origin, pathname } = new URL(target.url)
      return `${origin}${pathname}`.slice(0, 1_000)
    }
    case 'slack':
    case 'teams':
      return new URL(target.url).origin
    case 'pagerduty':
      return 'PagerDuty'
    case 'email':
      return target.to.join(', ').slice(0, 1_000)
  }
}
