import type { Attributes } from '../options.ts'
import { clockOrigin, randomHex, unixNano } from './otlp.ts'
import type { Telemetry } from './telemetry.ts'

/** Kinds of spans of OTLP. */
export const INTERNAL = 1
export const CLIENT = 3

/** A span that has not ended. */
export interface OpenSpan {
  readonly traceId: string
  readonly spanId: string
  /** Ends the span once. `endMs` is a time of `performance.now()`. A message makes it fail. */
  end(attributes?: Attributes, failure?: string, endMs?: number): void
}

/** The ids of a span that another one belongs to. */
export interface ParentSpan {
  readonly traceId: string
  readonly spanId: string
  /** The span is of another process, such as the server that has made the page. */
  readonly isRemote?: boolean
}

/** What a span begins with. */
interface NewSpan {
  readonly name: string
  readonly kind: number
  readonly attributes?: Attributes
  /** A time of `performance.now()`. */
  readonly startMs?: number
}

/** What happens within this time after the last request of a page load or navigation belongs to it. */
const QUIET_MS = 1_000
/** A page load or navigation takes no longer than this. */
const LONGEST_ROOT_MS = 15_000
/** Flags of OTLP: the span is sampled, and it is known whether its parent is of another process. */
const SAMPLED = 0x101
const IS_REMOTE = 0x200

/** Makes spans. Requests belong to the page load or navigation that is in progress, and are traces of their own otherwise. */
export class Tracer {
  readonly #telemetry: Telemetry
  #root: Root | undefined

  constructor(telemetry: Telemetry) {
    this.#telemetry = telemetry
  }

  /** The span that exceptions and log records belong to now. */
  get current(): ParentSpan | undefined {
    return this.#root?.span
  }

  /** Begins the span of a page load or navigation. It ends when its requests have, and the one before it ends now. */
  startRoot(span: NewSpan, parent?: ParentSpan): void {
    this.endRoot()
    const open = this.#open(span, parent)
    this.#root = new Root(open, span.startMs ?? performance.now(), () => {
      if (this.#root?.span === open) this.#root = undefined
    })
  }

  /** Adds attributes to the page load or navigation in progress, which lasts at least until `endMs`. */
  extendRoot(attributes: Attributes, endMs: number): void {
    this.#root?.extend(attributes, endMs)
  }

  endRoot(): void {
    this.#root?.end()
  }

  /** Begins a span. It is a child of the page load or navigation that is in progress. */
  start(span: NewSpan): OpenSpan {
    const root = this.#root
    const open = this.#open(span, root?.span)
    if (root === undefined) return open
    root.began()
    return {
      ...open,
      end(attributes, failure, endMs = performance.now()) {
        open.end(attributes, failure, endMs)
        root.ended(endMs)
      },
    }
  }

  /** Adds a span that has ended. */
  add(span: NewSpan & { readonly startMs: number }, endMs: number): void {
    this.#open(span, this.#root?.span).end({}, undefined, endMs)
  }

  #open({ name, kind, attributes, startMs = performance.now() }: NewSpan, parent: ParentSpan | undefined): OpenSpan {
    const traceId = parent?.traceId ?? randomHex(16)
    const spanId = randomHex(8)
    let isOpen = true
    const end = (more: Attributes = {}, failure?: string, endMs = performance.now()) => {
      if (!isOpen) return
      isOpen = false
      const originMs = clockOrigin()
      const span = {
        ...{ traceId, spanId, name, kind },
        ...(parent && { parentSpanId: parent.spanId }),
        flags: SAMPLED | (parent?.isRemote ? IS_REMOTE : 0),
        startTimeUnixNano: unixNano(startMs, originMs),
        endTimeUnixNano: unixNano(Math.max(startMs, endMs), originMs),
        ...(failure !== undefined && { status: { code: 2, message: failure } }),
      }
      this.#telemetry.add('traces', span, { ...attributes, ...more })
    }
    return { traceId, spanId, end }
  }
}

/** A page load or navigation in progress. */
class Root {
  readonly span: OpenSpan
  readonly #onEnd: () => void
  #pending = 0
  #endMs: number
  #attributes: Attributes = {}
  #quiet: ReturnType<typeof setTimeout>
  readonly #longest: ReturnType<typeof setTimeout>

  constructor(span: OpenSpan, startMs: number, onEnd: () => void) {
    this.span = span
    this.#endMs = startMs
    this.#onEnd = onEnd
    this.#quiet = setTimeout(() => this.end(), QUIET_MS)
    this.#longest = setTimeout(() => this.end(), LONGEST_ROOT_MS)
  }

  began(): void {
    this.#pending++
    clearTimeout(this.#quiet)
  }

  ended(endMs: number): void {
    this.#pending--
    this.#endMs = Math.max(this.#endMs, endMs)
    this.#wait()
  }

  extend(attributes: Attributes, endMs: number): void {
    this.#attributes = { ...this.#attributes, ...attributes }
    this.#endMs = Math.max(this.#endMs, endMs)
    this.#wait()
  }

  end(): void {
    clearTimeout(this.#quiet)
    clearTimeout(this.#longest)
    this.span.end(this.#attributes, undefined, this.#endMs)
    this.#onEnd()
  }

  #wait(): void {
    clearTimeout(this.#quiet)
    if (this.#pending === 0) this.#quiet = setTimeout(() => this.end(), QUIET_MS)
  }
}
