import type { RequestFeed } from '../signals/request-feed.ts'

/** The part of a plugin of rrweb that is used: it emits the payloads of its events. */
interface RecorderPlugin {
  readonly name: string
  readonly observer: (emit: (payload: object) => void) => () => void
  readonly options: object
}

const LEVELS = ['debug', 'info', 'log', 'warn', 'error'] as const
const MAX_ARGUMENTS = 10
const MAX_CHARACTERS = 1_000

/** Records the lines of the console, in the form of rrweb's plugin. */
export function consoleLines(): RecorderPlugin {
  return {
    name: 'rrweb/console@1',
    options: {},
    observer(emit) {
      const undo = LEVELS.map(level => watchLevel(level, payload => emit({ level, trace: [], payload })))
      return () => {
        for (const restore of undo) restore()
      }
    },
  }
}

/** Records the requests of the page, in the form of rrweb's plugin. Their bodies are not recorded. */
export function requests(feed: RequestFeed): RecorderPlugin {
  return {
    name: 'rrweb/network@1',
    options: {},
    observer: emit => feed.subscribe(({ method, url, status }) => emit({ requests: [{ method, name: url, status }] })),
  }
}

function watchLevel(level: (typeof LEVELS)[number], onLine: (parts: readonly string[]) => void): () => void {
  const original = console[level]
  let isRecording = false
  function watched(...given: unknown[]): void {
    Reflect.apply(original, console, given)
    if (isRecording) return
    isRecording = true
    try {
      onLine(given.slice(0, MAX_ARGUMENTS).map(textOf))
    } finally {
      isRecording = false
    }
  }
  console[level] = watched
  return () => {
    if (console[level] === watched) console[level] = original
  }
}

/** Returns an argument as JSON, as players expect it. */
function textOf(argument: unknown): string {
  const text = argument instanceof Error ? `${argument.name}: ${argument.message}` : argument
  try {
    const json = JSON.stringify(text) ?? JSON.stringify(String(text))
    return json.length <= MAX_CHARACTERS ? json : JSON.stringify(json.slice(0, MAX_CHARACTERS))
  } catch {
    // A cycle, such as an element of a framework.
    return JSON.stringify(Object.prototype.toString.call(argument))
  }
}
