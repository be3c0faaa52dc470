import type { CalledKind } from '../../../schemas/records/alerts.ts'
import type { AlertsStage } from './alerts-stage.ts'

/** What is wrong with the events that a receiver got, as `kind type`. */
interface Faults {
  /** Caused, and never received. */
  readonly lost: string[]
  /** Received under more than one id. */
  readonly doubled: string[]
  /** Received, and never caused. */
  readonly uncaused: string[]
}

/** Compares the events that a test has caused, each once, with those that the receiver of a stage got. */
export class CallLedger {
  readonly #stage: Pick<AlertsStage, 'events' | 'receiver'>
  readonly #caused = new Set<string>()
  /** Ids of the events received so far, by what they are about. */
  readonly #received = new Map<string, Set<string>>()
  /** Ids of findings by the type of their exception. */
  readonly #findings = new Map<string, string>()
  #read = 0

  constructor(stage: Pick<AlertsStage, 'events' | 'receiver'>) {
    this.#stage = stage
  }

  /** Notes that an event of this kind is to be received about each finding, by the type of its exception. */
  cause(kind: CalledKind, types: readonly string[]): void {
    for (const type of types) this.#caused.add(`${kind} ${type}`)
  }

  /** Returns how many messages were received, repetitions included. */
  get messages(): number {
    this.#readOn()
    return this.#read
  }

  /** Returns how many events were received. */
  get events(): number {
    this.#readOn()
    return this.#received.size
  }

  /** Returns the id of the finding of this type if its event was received. */
  findingOf(kind: CalledKind, type: string): string | undefined {
    this.#readOn()
    return this.#received.has(`${kind} ${type}`) ? this.#findings.get(type) : undefined
  }

  faults(): Faults {
    this.#readOn()
    const received = [...this.#received]
    return {
      lost: [...this.#caused].filter(event => !this.#received.has(event)),
      doubled: received.filter(([, ids]) => ids.size > 1).map(([event]) => event),
      uncaused: received.filter(([event]) => !this.#caused.has(event)).map(([event]) => event),
    }
  }

  /** Reads what arrived since. A receiver tells repetitions by `webhook-id`, so that each has to have one id there too. */
  #readOn(): void {
    const events = this.#stage.events()
    for (; this.#read < events.length; this.#read++) {
      const event = events[this.#read]
      if (event === undefined || !('finding' in event.data)) continue
      const { id, finding, resolved } = event.data
      // The end of a spike comes minutes after it, or never.
      if (event.type === 'finding.spiking' && resolved) continue
      const about = `${event.type} ${finding.type}`
      const ids = this.#received.get(about) ?? new Set()
      this.#received.set(about, ids.add(`${this.#stage.receiver.received[this.#read]?.headers['webhook-id']} ${id}`))
      this.#findings.set(finding.type, finding.id)
    }
  }
}
