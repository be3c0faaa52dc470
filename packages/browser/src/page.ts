import { Delivery } from './delivery/delivery.ts'
import { Numbering } from './delivery/numbering.ts'
import { Outbox, type TextRequest } from './delivery/outbox.ts'
import { beginLife } from './delivery/page-life.ts'
import { openSpool, type Spool } from './delivery/spool.ts'
import { watchErrors } from './instruments/errors.ts'
import { watchFetch } from './instruments/fetch.ts'
import { watchPage } from './instruments/page.ts'
import { watchVitals } from './instruments/vitals.ts'
import { watchXhr } from './instruments/xhr.ts'
import type { Attributes, Penstock, PenstockOptions, Person, Status } from './options.ts'
import { PageRecording } from './page-recording.ts'
import { readReceipts } from './receipts.ts'
import { isSampled } from './sampling.ts'
import { newId, Session } from './session.ts'
import { Logger } from './signals/logger.ts'
import { RequestFeed } from './signals/request-feed.ts'
import { TelemetryBuffer } from './signals/telemetry.ts'
import { Tracer } from './signals/tracer.ts'

/** Telemetry is written to the spool this often. */
const CUT_EVERY_MS = 1_000
const HEARTBEAT_EVERY_MS = 30_000
const JSON_TYPE = 'application/json'

/** Creates the telemetry of this page. `onStop` is called when it has stopped. */
export function createPage(options: PenstockOptions, onStop: () => void): Penstock {
  return new PageTelemetry(options, onStop)
}

/** The connected parts while there is consent. */
interface Sending {
  readonly spool: Promise<Spool>
  readonly delivery: Delivery
  readonly outbox: Outbox
}

class PageTelemetry implements Penstock {
  readonly #options: PenstockOptions
  readonly #url: string
  readonly #onStop: () => void
  readonly #numbering = new Numbering()
  readonly #feed = new RequestFeed()
  readonly #buffer: TelemetryBuffer
  readonly #logger: Logger
  readonly #recording: PageRecording
  readonly #restore: (() => void)[] = []
  #session: Session
  #sending: Sending | undefined
  #person: { readonly identifier: string; readonly person: Person } | undefined
  #cutTimer: ReturnType<typeof setTimeout> | undefined
  #isStopped = false

  constructor(options: PenstockOptions, onStop: () => void) {
    this.#options = options
    this.#url = new URL(options.url, document.baseURI).href.replace(/\/$/, '')
    this.#onStop = onStop
    const isGranted = options.consent !== 'pending'
    this.#session = this.#openSession(isGranted)
    this.#buffer = new TelemetryBuffer(
      resourceOf(options),
      () => this.#commonAttributes(),
      () => this.#cut(),
    )
    const tracer = new Tracer(this.#buffer)
    this.#logger = new Logger(this.#buffer, tracer)
    this.#recording = new PageRecording(options.recording, this.#feed, chunk => void this.#sending?.outbox.add(chunk))
    this.#watch(tracer)
    if (isGranted) this.#begin()
  }

  get sessionId(): string {
    return this.#session.id
  }

  identify(identifier: string, person: Person = {}): void {
    this.#person = { identifier, person }
    this.#sendIdentity()
  }

  captureException(error: unknown, attributes?: Attributes): void {
    this.#logger.exception(error, true, attributes)
    this.#cutSoon()
  }

  log(severity: 'debug' | 'info' | 'warn' | 'error', body: string, attributes?: Attributes): void {
    this.#logger.log(severity, body, attributes)
    this.#cutSoon()
  }

  consent(isGranted: boolean): void {
    if (this.#isStopped || isGranted === (this.#sending !== undefined)) return
    this.#session.stop()
    if (!isGranted) this.#session.forget()
    this.#session = this.#openSession(isGranted)
    if (isGranted) this.#begin()
    else this.#withdraw()
  }

  async status(): Promise<Status> {
    const delivery = this.#sending?.delivery
    const { receiptsUrl = this.#url, key } = this.#options
    const counts = delivery?.counts ?? { sent: 0, acknowledged: 0, lost: 0 }
    return {
      ...{ session: this.sessionId, page: this.#numbering.page, ...counts },
      stored: await readReceipts({ url: receiptsUrl, key }, delivery?.receipts ?? []),
      waiting: delivery?.waiting ?? 0,
      spool: (await this.#sending?.spool)?.kind ?? 'memory',
    }
  }

  async flush(): Promise<void> {
    const { outbox, delivery } = this.#sending ?? {}
    await Promise.all([this.#cut(), ...this.#recording.rest().map(chunk => outbox?.add(chunk))])
    await delivery?.flush()
  }

  async stop(): Promise<void> {
    if (this.#isStopped) return
    this.#isStopped = true
    // In the reverse order of their beginning, because both patch the console.
    this.#recording.stop()
    for (const restore of this.#restore.reverse()) restore()
    await this.flush()
    this.#session.stop()
    this.#sending?.delivery.stop()
    this.#onStop()
  }

  #openSession(isStored: boolean): Session {
    return new Session(isStored, id => this.#onSession(id))
  }

  /** Begins to send, which needs consent. Nothing that happened before it is sent. */
  #begin(): void {
    this.#buffer.take()
    if (!isSampled(this.#session.id, 'session', this.#options.sampleSessions ?? 1)) return
    const { key } = this.#options
    const scope = key.slice(-16)
    const spool = openSpool(`penstock-${scope}`)
    const life = beginLife(newId(), scope)
    const destination = { url: this.#url, key }
    const onKeyRefused = (status: number) => {
      console.warn(`[penstock] nothing is sent any more: the service refuses the key (${status})`)
      void this.stop()
    }
    const delivery = new Delivery({ destination, spool, life, onKeyRefused })
    this.#sending = { spool, delivery, outbox: new Outbox(delivery) }
    this.#sendHeartbeat()
    this.#sendIdentity()
    this.#recording.start(this.#session.id)
    this.#cutSoon()
  }

  #withdraw(): void {
    const { delivery } = this.#sending ?? {}
    this.#sending = undefined
    this.#recording.stop()
    this.#buffer.take()
    void delivery?.clear().then(() => delivery.stop())
  }

  #watch(tracer: Tracer): void {
    const { propagateTo = [], ignore = [] } = this.#options
    const rules = { ownUrl: this.#url, propagateTo, ignore, feed: this.#feed }
    this.#restore.push(watchPage(tracer), watchFetch(tracer, rules), watchXhr(tracer, rules), watchErrors(this.#logger))
    watchVitals(this.#buffer, () => this.#isStopped)
    const heartbeat = setInterval(() => this.#sendHeartbeat(), HEARTBEAT_EVERY_MS)
    const cut = setInterval(() => void this.#cut(), CUT_EVERY_MS)
    const onHidden = () => {
      if (document.visibilityState === 'hidden') this.#end(tracer)
    }
    const onEnd = () => {
      this.#end(tracer)
      this.#recording.leave()
      this.#sending?.delivery.leave()
    }
    const onShow = ({ persisted }: PageTransitionEvent) => {
      if (!persisted) return
      this.#sending?.delivery.resume()
      this.#recording.resume()
    }
    document.addEventListener('visibilitychange', onHidden)
    addEventListener('pagehide', onEnd)
    addEventListener('pageshow', onShow)
    this.#restore.push(() => {
      clearInterval(heartbeat)
      clearInterval(cut)
      document.removeEventListener('visibilitychange', onHidden)
      removeEventListener('pagehide', onEnd)
      removeEventListener('pageshow', onShow)
    })
  }

  #onSession(id: string): void {
    void this.#cut()
    if (this.#sending === undefined) return
    this.#sendHeartbeat()
    this.#sendIdentity()
    this.#recording.start(id)
  }

  #commonAttributes(): Attributes {
    return { ...this.#options.attributes, 'session.id': this.#session.id, 'browser.page.path': location.pathname }
  }

  #sendHeartbeat(): void {
    if (document.visibilityState !== 'visible') return
    const { id, deviceId } = this.#session
    this.#post('/v3/session', { sessionId: id, deviceId })
  }

  #sendIdentity(): void {
    if (this.#person === undefined) return
    const { identifier, person } = this.#person
    const { id, deviceId } = this.#session
    const source = { type: 'custom', name: this.#options.service ?? location.hostname }
    this.#post('/v3/session/identify', { source, ...person, sessionId: id, deviceId, identifier })
  }

  #post(path: string, body: object): void {
    if (this.#sending === undefined) return
    const target = `${path}?${this.#numbering.next(this.#session.id)}`
    void this.#sending.outbox.add({ target, contentType: JSON_TYPE, text: JSON.stringify(body) })
  }

  #cutSoon(): void {
    this.#cutTimer ??= setTimeout(() => void this.#cut(), 100)
  }

  /** Gives what waits to the spool. */
  async #cut(): Promise<void> {
    const { outbox } = this.#sending ?? {}
    if (outbox !== undefined) await Promise.all(this.#requests().map(request => outbox.add(request)))
  }

  /** The page is hidden or ends: what waits must leave now. */
  #end(tracer: Tracer): void {
    tracer.endRoot()
    this.#sending?.outbox.end([...this.#requests(), ...this.#recording.rest()])
  }

  #requests(): TextRequest[] {
    clearTimeout(this.#cutTimer)
    this.#cutTimer = undefined
    return this.#buffer.take().map(({ signal, body }) => ({
      target: `/v1/${signal}?${this.#numbering.next(this.#session.id)}`,
      contentType: JSON_TYPE,
      text: body,
    }))
  }
}

function resourceOf({ service, version, environment }: PenstockOptions): Attributes {
  return {
    'service.name': service ?? location.hostname,
    'service.version': version,
    'deployment.environment.name': environment,
    'user_agent.original': navigator.userAgent,
    'browser.language': navigator.language,
    'telemetry.sdk.name': '@penstock/browser',
    'telemetry.sdk.language': 'webjs',
  }
}
