type Environment = Readonly<Record<string, string | undefined>>

/** The telemetry of a process is spans, log records and metrics. */
type Signal = 'traces' | 'logs' | 'metrics'

/** Where the records of a signal go. */
export interface Destination {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly isCompressed: boolean
}

/** Parts that `PENSTOCK_OFF` can name. */
const PARTS = ['console', 'exceptions', 'signals'] as const
type Part = (typeof PARTS)[number]

export interface Settings {
  readonly isOn: true
  /** A signal without a destination here is left to the variables of OpenTelemetry. */
  readonly destinations: Readonly<Partial<Record<Signal, Destination>>>
  readonly off: ReadonlySet<Part>
}

/** Without a reason, the user has switched telemetry off. */
interface NoSettings {
  readonly isOn: false
  readonly reason?: string
}

/** Reads the settings of this package. Variables of OpenTelemetry have precedence over those of Penstock. */
export function readSettings(env: Environment): Settings | NoSettings {
  if (env.OTEL_SDK_DISABLED?.trim().toLowerCase() === 'true') return { isOn: false }
  const off = (env.PENSTOCK_OFF ?? '').split(',').map(part => part.trim())
  if (off.includes('all')) return { isOn: false }
  const problem = problemOf(env)
  if (problem !== undefined) return { isOn: false, reason: problem }
  const signals = (['traces', 'logs', 'metrics'] as const).filter(signal => isSentHere(env, signal))
  return {
    isOn: true,
    destinations: Object.fromEntries(signals.map(signal => [signal, destinationOf(env, signal)])),
    off: new Set(PARTS.filter(part => off.includes(part))),
  }
}

function problemOf(env: Environment): string | undefined {
  const { PENSTOCK_URL: url, PENSTOCK_KEY: key } = env
  if (isSet(key) && !/^pk_[0-9A-Za-z]+$/.test(key)) return 'PENSTOCK_KEY must be a public key, which begins with pk_'
  if (isSet(url) && !/^https?:$/.test(URL.parse(url)?.protocol ?? ''))
    return 'PENSTOCK_URL must be an http or https URL'
  if (isSet(env.OTEL_EXPORTER_OTLP_ENDPOINT)) return undefined
  if (!isSet(url) && !isSet(key)) return 'set PENSTOCK_URL and PENSTOCK_KEY, or OTEL_EXPORTER_OTLP_ENDPOINT'
  if (!isSet(url)) return 'PENSTOCK_URL is not set'
  return isSet(key) || isSet(env.OTEL_EXPORTER_OTLP_HEADERS) ? undefined : 'PENSTOCK_KEY is not set'
}

/** Other exporters, other protocols and certificates are the business of the SDK. */
function isSentHere(env: Environment, signal: Signal): boolean {
  if (isSet(ofSignal(env, signal, 'CERTIFICATE')) || isSet(ofSignal(env, signal, 'CLIENT_CERTIFICATE'))) return false
  const exporter = env[`OTEL_${signal.toUpperCase()}_EXPORTER`]
  const protocol = ofSignal(env, signal, 'PROTOCOL')
  return (!isSet(exporter) || exporter.trim() === 'otlp') && (!isSet(protocol) || protocol.trim() === 'http/protobuf')
}

function destinationOf(env: Environment, signal: Signal): Destination {
  const own = env[`OTEL_EXPORTER_OTLP_${signal.toUpperCase()}_ENDPOINT`]
  const base = isSet(env.OTEL_EXPORTER_OTLP_ENDPOINT) ? env.OTEL_EXPORTER_OTLP_ENDPOINT : env.PENSTOCK_URL
  const headers = new Map(isSet(env.PENSTOCK_KEY) ? [['authorization', `Bearer ${env.PENSTOCK_KEY}`]] : [])
  for (const list of ['OTEL_EXPORTER_OTLP_HEADERS', `OTEL_EXPORTER_OTLP_${signal.toUpperCase()}_HEADERS`]) {
    for (const [name, value] of readPairs(env[list] ?? '')) headers.set(name.toLowerCase(), value)
  }
  return {
    url: isSet(own) ? own : `${(base ?? '').replace(/\/+$/, '')}/v1/${signal}`,
    headers: Object.fromEntries(headers),
    isCompressed: ofSignal(env, signal, 'COMPRESSION')?.trim() !== 'none',
  }
}

/** Returns a variable of one signal, else that of all. */
function ofSignal(env: Environment, signal: Signal, name: string): string | undefined {
  const own = env[`OTEL_EXPORTER_OTLP_${signal.toUpperCase()}_${name}`]
  return isSet(own) ? own : env[`OTEL_EXPORTER_OTLP_${name}`]
}

/** Reads `name=value,name=value`, in which values may be percent-encoded. */
function readPairs(text: string): [name: string, value: string][] {
  return text.split(',').flatMap(pair => {
    const equals = pair.indexOf('=')
    return equals < 1 ? [] : [[pair.slice(0, equals).trim(), decode(pair.slice(equals + 1).trim())] as [string, string]]
  })
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

function isSet(text: string | undefined): text is string {
  return text !== undefined && text.trim() !== ''
}
