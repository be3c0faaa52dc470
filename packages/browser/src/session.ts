import { openStorage, type TextStorage } from './storage.ts'

/** A session as the pages of an origin share it. Times are Unix ms. */
interface StoredSession {
  readonly id: string
  readonly startedAtMs: number
  readonly activeAtMs: number
}

/** A session ends after this time without activity on any page, and after this time in any case. */
const IDLE_MS = 30 * 60_000
const LONGEST_MS = 24 * 3_600_000
/** How often activity is written. Pages read it before they end a session. */
const WRITE_EVERY_MS = 5_000
/** A time that is so far ahead is from a clock that was set back. */
const CLOCK_TOLERANCE_MS = 60_000

const SESSION_KEY = 'penstock.session'
const DEVICE_KEY = 'penstock.device'
const ACTIVITY = ['pointerdown', 'keydown', 'scroll', 'touchstart'] as const

/** The session of a page, which it shares with the other pages of its origin. */
export class Session {
  readonly #storage: TextStorage
  readonly #now: () => number
  readonly #onChange: (id: string, previous: string) => void
  #current: StoredSession

  /** `onChange` is called when another session begins. `isStored` is false while nothing may be written. */
  constructor(isStored: boolean, onChange: (id: string, previous: string) => void, now: () => number = Date.now) {
    this.#storage = openStorage(isStored ? 'local' : 'none')
    this.#now = now
    this.#onChange = onChange
    this.#current = this.#stored() ?? this.#begin()
    for (const type of ACTIVITY) addEventListener(type, this.#onActivity, { passive: true, capture: true })
    addEventListener('storage', this.#onStorage)
    document.addEventListener('visibilitychange', this.#onVisibility)
    this.touch()
  }

  /** The id of the session in which something happens now. */
  get id(): string {
    this.#continue()
    return this.#current.id
  }

  /** Id of the browser on this origin. */
  get deviceId(): string {
    const known = this.#storage.get(DEVICE_KEY)
    if (known !== undefined) return known
    const id = newId()
    this.#storage.set(DEVICE_KEY, id)
    return id
  }

  /** Notes that the user does something. */
  touch(): void {
    this.#continue()
    if (this.#now() - this.#current.activeAtMs < WRITE_EVERY_MS) return
    this.#write({ ...this.#current, activeAtMs: this.#now() })
  }

  /** Forgets session and device. */
  forget(): void {
    this.#storage.remove(SESSION_KEY)
    this.#storage.remove(DEVICE_KEY)
  }

  stop(): void {
    for (const type of ACTIVITY) removeEventListener(type, this.#onActivity, { capture: true })
    removeEventListener('storage', this.#onStorage)
    document.removeEventListener('visibilitychange', this.#onVisibility)
  }

  readonly #onActivity = () => this.touch()
  readonly #onVisibility = () => {
    if (document.visibilityState === 'visible') this.touch()
  }
  /** Another page has begun a session, or was active. */
  readonly #onStorage = ({ key }: StorageEvent) => {
    if (key === SESSION_KEY || key === null) this.#continue()
  }

  /** Begins another session if this one has ended, or takes part in the one that another page has begun. */
  #continue(): void {
    const previous = this.#current
    if (!this.#isOver(previous)) {
      const stored = this.#stored()
      // The storage was cleared: the session continues.
      if (stored === undefined) this.#write(previous)
      else this.#current = stored
    } else this.#current = this.#stored() ?? this.#begin()
    if (this.#current.id !== previous.id) this.#onChange(this.#current.id, previous.id)
  }

  #isOver({ startedAtMs, activeAtMs }: StoredSession): boolean {
    const now = this.#now()
    return now - activeAtMs > IDLE_MS || now - startedAtMs > LONGEST_MS || activeAtMs - now > CLOCK_TOLERANCE_MS
  }

  /** Returns the session of the storage, if there is one and it is not over. */
  #stored(): StoredSession | undefined {
    const session = parse(this.#storage.get(SESSION_KEY))
    return session === undefined || this.#isOver(session) ? undefined : session
  }

  #begin(): StoredSession {
    const now = this.#now()
    return this.#write({ id: newId(), startedAtMs: now, activeAtMs: now })
  }

  #write(session: StoredSession): StoredSession {
    this.#current = session
    this.#storage.set(SESSION_KEY, JSON.stringify(session))
    return session
  }
}

/** Returns a random id. `crypto.randomUUID` is for secure contexts only. */
export function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80
  const hex = Array.from(bytes, byte => byte.toString(16).padStart(2, '0')).join('')
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}

function parse(text: string | undefined): StoredSession | undefined {
  try {
    const { id, startedAtMs, activeAtMs } = JSON.parse(text ?? '{}')
    const isValid = typeof id === 'string' && id !== '' && Number.isFinite(startedAtMs) && Number.isFinite(activeAtMs)
    return isValid ? { id, startedAtMs, activeAtMs } : undefined
  } catch {
    return undefined
  }
}
