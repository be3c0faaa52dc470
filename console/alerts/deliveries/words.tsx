import type { Delivery, DeliveryAttempt, DeliveryAttempts } from '../../api/generated/client.ts'
import { formatSeconds } from '../../state/format.ts'
import { addressOf } from '../../state/router.ts'
import { nameOfKind } from '../kinds.ts'

type State = Delivery['state']

/** States of deliveries for people. */
export const STATES: Readonly<Record<State, { readonly name: string; readonly class: string }>> = {
  delivered: { name: 'delivered', class: 'good' },
  waiting: { name: 'waiting', class: 'doubt' },
  parked: { name: 'parked', class: 'bad' },
  ended: { name: 'not sent', class: 'bad' },
}

/** The state of a delivery in a word. */
export function StateTag({ state }: { readonly state: State }) {
  return <span class={`tag ${STATES[state].class}`}>{STATES[state].name}</span>
}

/** Returns the last attempt of each delivery, the latest first. */
export function latestOf({ attempts }: DeliveryAttempts): DeliveryAttempts['attempts'] {
  const seen = new Set<string>()
  return attempts.filter(({ deliveryId }) => !seen.has(deliveryId) && seen.add(deliveryId))
}

/** Returns the address of a delivery. */
export function addressOfDelivery(deliveryId: string): string {
  return addressOf('settings/alerts', { delivery: deliveryId })
}

const KINDS_SHOWN = 3

/** Returns what a delivery is about: the kinds of its events. */
export function kindsOf(events: readonly { readonly type: string }[]): string {
  const kinds = [...new Set(events.map(({ type }) => nameOfKind(type)))]
  const count = events.length > 1 ? ` (${events.length})` : ''
  return `${kinds.slice(0, KINDS_SHOWN).join(', ')}${kinds.length > KINDS_SHOWN ? ', …' : ''}${count}`
}

const RESULTS: Readonly<Record<DeliveryAttempt['result'], string>> = {
  delivered: 'was accepted',
  failed: 'was not accepted',
  refused: 'was not made',
  gone: 'was answered with 410, which disables the receiver',
}

/** Returns how an attempt ended. */
export function attemptWords({ attempt, result, status, reason, durationMs }: DeliveryAttempt): string {
  // Most reasons name the status.
  const isNamed = status === undefined || reason?.includes(String(status))
  const words = [isNamed ? undefined : `status ${status}`, reason, `after ${formatSeconds(durationMs / 1_000)}`]
  return `Attempt ${attempt} ${RESULTS[result]}: ${words.filter(word => word !== undefined).join(', ')}.`
}

/** Returns how long it is until a time. */
export function until(iso: string): string {
  const seconds = Math.round((Date.parse(iso) - Date.now()) / 1_000)
  return seconds <= 0 ? 'a moment' : formatSeconds(seconds)
}
