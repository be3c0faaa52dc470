/** A value of an attribute. */
export type AttributeValue = string | number | boolean
/** Attributes by name. Undefined values are left out. */
export type Attributes = Readonly<Record<string, AttributeValue | undefined>>

/** Settings of the recording. Everything that a person types is masked, whatever they are. */
export interface RecordingOptions {
  /** Share of the sessions that are recorded, from 0 to 1. */
  readonly sample?: number
  /** Selector of elements whose text and attributes are masked, besides `[data-penstock-mask]` and editable elements. */
  readonly mask?: string
  /** Selector of elements that are left out and shown as empty boxes, besides `[data-penstock-block]`. */
  readonly block?: string
  /** Masks all text of the page. */
  readonly maskAllText?: boolean
}

/** Settings of `init`. */
export interface PenstockOptions {
  /**
   * Where telemetry is sent: a path of the page's own origin that a proxy forwards, such as `/telemetry`, or a URL of the
   * service.
   */
  readonly url: string
  /** The public key of a surface, `pk_…`. */
  readonly key: string
  /** `service.name`. The host of the page unless given. */
  readonly service?: string
  /** `service.version`: the release, as its source maps were uploaded. */
  readonly version?: string
  /** `deployment.environment.name`. */
  readonly environment?: string
  /** Attributes of all spans, log records and points. */
  readonly attributes?: Attributes
  /** Other origins to which `traceparent` is sent: prefixes of URLs, or patterns. The page's own origin always has it. */
  readonly propagateTo?: readonly (string | RegExp)[]
  /** Requests without spans: parts of URLs, or patterns. */
  readonly ignore?: readonly (string | RegExp)[]
  /** Share of the sessions that send anything, from 0 to 1. All unless given. */
  readonly sampleSessions?: number
  /** How much of the sessions that send is recorded. Nothing unless given. */
  readonly recording?: RecordingOptions
  /** `pending`: nothing is stored in the browser or sent until `consent(true)`. */
  readonly consent?: 'granted' | 'pending'
  /** URL of the API that reads receipts for `status()`. `url` unless given. */
  readonly receiptsUrl?: string
}

/** Who the user of a session is (docs/api/sessions.md#identify). */
export interface Person {
  /** Where the identifier is from. */
  readonly source?: { readonly type: string; readonly name: string }
  readonly name?: string
  readonly email?: string
  readonly avatar?: string
  readonly country?: string
  readonly traits?: Readonly<Record<string, unknown>>
}

/** Numbers of the requests of this page. */
export interface Status {
  readonly session: string
  readonly page: string
  /** Requests that the page has numbered, and chunks of its recording. */
  readonly sent: number
  /** Those that the service has on disk. */
  readonly acknowledged: number
  /** Those that their receipts show as stored. Only the last 100 are looked up. */
  readonly stored: number
  /** Those that wait: for the network, the service, or an answer. */
  readonly waiting: number
  /** Those that the service has refused for good, or that did not fit into the spool. */
  readonly lost: number
  /** Whether what waits survives the page. */
  readonly spool: 'disk' | 'memory'
}

/** The telemetry of a page. */
export interface Penstock {
  /** Id of the session. It changes after 30 idle minutes and after a day. */
  readonly sessionId: string
  /** States who the user is, in this session and in those that follow it on this page. */
  identify(identifier: string, person?: Person): void
  /** Reports an error that the application has caught, with its causes. */
  captureException(error: unknown, attributes?: Attributes): void
  /** Reports a log record. */
  log(severity: 'debug' | 'info' | 'warn' | 'error', body: string, attributes?: Attributes): void
  /** Grants or withdraws consent. Without it nothing is stored or sent, and what waited is deleted. */
  consent(isGranted: boolean): void
  /** Returns what became of the requests of this page. */
  status(): Promise<Status>
  /** Sends what there is, and resolves when it is acknowledged or waits in the spool. */
  flush(): Promise<void>
  /** Sends what there is and restores what was patched. The page is as without this package. */
  stop(): Promise<void>
}
