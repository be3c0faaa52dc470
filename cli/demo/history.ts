import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../schemas/units.ts'
import { measure } from './metrics.ts'
import { failCheckout, failCoupon } from './page-failures.ts'
import type { Random } from './random.ts'
import type { Recorded } from './recorded.ts'
import type { Telemetry } from './telemetry.ts'
import { browse, type CheckoutEnd, checkout } from './visits.ts'

/** Somebody who visits the shop. Customers who have not signed in have no name. */
export interface Visitor {
  readonly sessionId: string
  readonly deviceId: string
  readonly user?: { readonly id: string; readonly name: string; readonly email: string; readonly country: string }
}

/** How much history there is. */
export interface HistorySize {
  readonly hours: number
  readonly sessions: number
}

const FIRST = ['Mara', 'Jon', 'Lucía', 'Søren', 'Priya', 'Wei', 'Fatima', 'Olu', 'Émile', 'Noor', 'Hana', 'Tariq']
const LAST = ['Okafor', 'Nakamura', 'García', 'Özdemir', 'Smith', 'Kowalczyk', 'Rossi', 'Haddad']
const COUNTRIES = ['DE', 'SE', 'NG', 'JP', 'US']
/** When 2.4.0 of the page was deployed, in ms before now. */
const DEPLOYED_MS = 40 * MINUTE_MS
/** How long all connections of the database of the orders are in use. */
const EXHAUSTED_MS = 20 * MINUTE_MS

/** Makes hours of visits and metrics before now, and returns who visited. */
export function makeHistory(telemetry: Telemetry, recorded: Recorded, nowMs: number, size: HistorySize): Visitor[] {
  const { random } = telemetry
  const startMs = nowMs - size.hours * HOUR_MS
  const exhaustedMs = startMs + (nowMs - startMs) * 0.4
  const visitors = Array.from({ length: size.sessions }, (_, i) => visitorOf(random, i))
  for (const visitor of visitors) {
    const user = visitor.user?.id ?? 'anonymous'
    // Some come after 2.4.0 was deployed.
    const earliest = random.chance(0.3) ? nowMs - DEPLOYED_MS : startMs
    let at = earliest + random.next() * (nowMs - earliest - 12 * MINUTE_MS)
    for (let steps = random.int(3, 12); steps > 0 && at < nowMs - MINUTE_MS; steps--) {
      const version = at < nowMs - DEPLOYED_MS ? '2.3.0' : '2.4.0'
      const visit = { sessionId: visitor.sessionId, version }
      const coupon = recorded.coupon[version]
      if (random.chance(0.7)) browse(telemetry, visit, at)
      else if (random.chance(0.1) && coupon) failCoupon(telemetry, visit, at, coupon)
      else if (version === '2.4.0' && random.chance(0.5)) failCheckout(telemetry, visit, at, recorded.checkout)
      else checkout(telemetry, visit, at, endOf(random, at - exhaustedMs), user)
      at += random.int(8, 70) * SECOND_MS
    }
  }
  for (let i = 0; i < size.sessions / 2; i++) {
    const { sessionId } = random.pick(visitors)
    checkout(
      telemetry,
      { sessionId, version: '2.3.0' },
      exhaustedMs + random.next() * EXHAUSTED_MS,
      'pool',
      'anonymous',
    )
  }
  everyEnd(telemetry, recorded, random.pick(visitors), exhaustedMs)
  measure(telemetry, nowMs, size.hours)
  return visitors
}

/** However small the history is, each failure is in it. */
function everyEnd(telemetry: Telemetry, { coupon }: Recorded, { sessionId }: Visitor, at: number): void {
  const ends: readonly CheckoutEnd[] = ['placed', 'declined', 'pool', 'timeout', 'panic', 'sale']
  for (const [i, end] of ends.entries()) {
    checkout(telemetry, { sessionId, version: '2.3.0' }, at + i * MINUTE_MS, end, 'anonymous')
  }
  for (const [version, exception] of Object.entries(coupon)) {
    failCoupon(telemetry, { sessionId, version }, at + 10 * MINUTE_MS, exception)
  }
}

function endOf(random: Random, sinceExhaustedMs: number): CheckoutEnd {
  if (sinceExhaustedMs >= 0 && sinceExhaustedMs < EXHAUSTED_MS && random.chance(0.8)) return 'pool'
  if (random.chance(0.05)) return 'declined'
  return random.chance(0.05) ? random.pick(['timeout', 'panic', 'sale'] as const) : 'placed'
}

function visitorOf(random: Random, index: number): Visitor {
  const visitor = { sessionId: random.uuid(), deviceId: random.uuid() }
  if (index % 5 === 4) return visitor
  const [first, last] = [random.pick(FIRST), random.pick(LAST)]
  const plain = `${first}.${last}`
    .normalize('NFD')
    .replace(/[^a-zA-Z.]/g, '')
    .toLowerCase()
  const country = random.pick(COUNTRIES)
  return { ...visitor, user: { id: `usr_${plain}`, name: `${first} ${last}`, email: `${plain}@example.com`, country } }
}
