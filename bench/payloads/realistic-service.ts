import { below, createRandom, createZipf, type Random } from './zipf.ts'

/** A service of a shop, with what its spans have in common. */
export interface Service {
  readonly name: string
  readonly version: string
  readonly language: 'nodejs' | 'java' | 'go' | 'python'
  readonly hosts: readonly Host[]
  readonly routes: readonly string[]
  readonly statements: readonly string[]
  readonly errors: readonly ServiceError[]
}

/** A machine on which a service runs. */
interface Host {
  readonly name: string
  readonly instanceId: string
  readonly pod: string
  readonly zone: string
  readonly pid: number
}

/** An error that a service throws again and again. The number of its message varies. */
interface ServiceError {
  readonly type: string
  readonly message: string
  readonly stack: string
}

const SERVICES = 24
const LANGUAGES = ['nodejs', 'java', 'go', 'python'] as const
const NOUNS =
  'account address basket cart catalog checkout coupon customer delivery discount email event fraud image inventory invoice ledger notification order payment price product profile recommendation refund return review search session shipment stock subscription tax tenant token user wallet warehouse wishlist'.split(
    ' ',
  )
const VERBS =
  'apply cancel capture check create delete export find import list load lock merge publish read refresh reserve resolve send store sync update validate verify'.split(
    ' ',
  )
const ZONES = ['eu-central-1a', 'eu-central-1b', 'eu-central-1c', 'us-east-1a', 'us-east-1d']

/** The services, the most frequent first. The same in every run. */
const REALISTIC_SERVICES: readonly Service[] = makeServices(createRandom(20_261_122))

const drawRank = createZipf(SERVICES)

/** Draws a service. */
export const drawService = (random: Random) => REALISTIC_SERVICES[drawRank(random)] as Service

function makeServices(random: Random): Service[] {
  const pick = <T>(items: readonly T[]) => items[below(random, items.length)] as T
  const hex = (digits: number) => Array.from({ length: digits }, () => below(random, 16).toString(16)).join('')
  return Array.from({ length: SERVICES }, (_, i) => {
    const noun = NOUNS[(i * 7) % NOUNS.length] as string
    const name = `${noun}-${pick(['api', 'service', 'worker', 'gateway'])}`
    const deployment = hex(9)
    return {
      name,
      version: `${1 + below(random, 9)}.${below(random, 40)}.${below(random, 12)}`,
      language: LANGUAGES[i % LANGUAGES.length] as Service['language'],
      hosts: Array.from({ length: 1 + below(random, 8) }, () => ({
        name: `ip-10-${below(random, 256)}-${below(random, 256)}-${below(random, 256)}.eu-central-1.compute.internal`,
        instanceId: `${hex(8)}-${hex(4)}-4${hex(3)}-9${hex(3)}-${hex(12)}`,
        pod: `${name}-${deployment}-${hex(5)}`,
        zone: pick(ZONES),
        pid: 1 + below(random, 60_000),
      })),
      routes: Array.from({ length: 12 + below(random, 60) }, () => makeRoute(random)),
      statements: Array.from({ length: 20 + below(random, 60) }, () => makeStatement(random)),
      errors: Array.from({ length: 8 + below(random, 24) }, () => makeError(random)),
    }
  })
}

function makeRoute(random: Random): string {
  const noun = () => NOUNS[below(random, NOUNS.length)] as string
  const id = `{${noun()}Id}`
  const end = ['', `/${VERBS[below(random, VERBS.length)]}`, `/${noun()}s`, `/${noun()}s/{id}`][below(random, 4)]
  return `/api/v${1 + below(random, 3)}/${noun()}s${random() < 0.7 ? `/${id}` : ''}${end}`
}

function makeStatement(random: Random): string {
  const noun = () => NOUNS[below(random, NOUNS.length)] as string
  const columns = Array.from({ length: 2 + below(random, 9) }, noun).join(', ')
  const table = `${noun()}s`
  switch (below(random, 4)) {
    case 0:
      return `INSERT INTO ${table} (id, ${columns}, created_at) VALUES (?, ?, ?, now()) ON CONFLICT DO NOTHING`
    case 1:
      return `UPDATE ${table} SET ${noun()} = ?, updated_at = now() WHERE id = ? AND version = ?`
    default:
      return `SELECT id, ${columns} FROM ${table} t JOIN ${noun()}s u ON u.${noun()}_id = t.id WHERE t.${noun()} = ? AND t.deleted_at IS NULL ORDER BY t.created_at DESC LIMIT ?`
  }
}

function makeError(random: Random): ServiceError {
  const noun = () => NOUNS[below(random, NOUNS.length)] as string
  const titled = (text: string) => text.charAt(0).toUpperCase() + text.slice(1)
  const frames = Array.from({ length: 4 + below(random, 24) }, () => {
    const file = noun()
    const verb = VERBS[below(random, VERBS.length)] as string
    return `    at ${titled(file)}.${verb}${titled(noun())} (/srv/app/dist/${noun()}/${file}.js:${1 + below(random, 900)}:${1 + below(random, 120)})`
  })
  return {
    type: `${titled(noun())}${['NotFoundError', 'TimeoutError', 'ConflictError', 'Error'][below(random, 4)]}`,
    message: `the ${noun()} could not be ${VERBS[below(random, VERBS.length)]}ed for ${noun()}`,
    stack: frames.join('\n'),
  }
}
