import { Replayer } from '@rrweb/replay'
import { DEPTH_MAX } from './harden-event.ts'
import { EVENT, isRecord, type RecordedEvent, SOURCE } from './recorded-event.ts'

/**
 * Members of rrweb's player that it uses itself to apply one event. Its own clock and list of events are not used: they keep every
 * event, and apply all between a snapshot and a time at once.
 */
interface ReplayerCore {
  getCastFn(event: unknown, isSync: boolean): () => void
  readonly emitter: { emit(type: 'flush'): void }
}

/** Without a recorded event rrweb cannot tell where a recording begins. */
const BEGINNING = { type: EVENT.meta, timestamp: 0, data: { href: '', width: 1_024, height: 768 } }

/** The recorded page, as it was at the time of the event that was applied last. */
export class Picture {
  readonly #replayer: Replayer
  readonly #core: ReplayerCore

  /** Creates the empty picture: a document in a frame in which no script runs. */
  constructor(root: HTMLElement, onSize: (width: number, height: number) => void) {
    this.#replayer = new Replayer([BEGINNING] as never, {
      root,
      liveMode: true,
      useVirtualDom: false,
      UNSAFE_replayCanvas: false,
      triggerFocus: false,
      mouseTail: false,
      showWarning: false,
      showDebug: false,
      loadTimeout: 0,
    })
    this.#core = this.#replayer as unknown as ReplayerCore
    this.#replayer.wrapper.inert = true
    this.#replayer.on('resize', size => {
      const { width, height } = size as { width: number; height: number }
      onSize(width, height)
    })
  }

  /** Applies an event. Throws what rrweb throws. */
  apply(event: RecordedEvent, isPlaying: boolean): void {
    const { type, data } = event
    const added = addedIds(event)
    const known = added.filter(id => this.#replayer.getMirror().getNode(id) !== null)
    // Only clicks look different when they are played: rings spread from them.
    this.#core.getCastFn(event, !(isPlaying && type === EVENT.incremental && data.source === SOURCE.mouseInteraction))()
    this.#limitDepth(added, new Set(known))
  }

  /** Draws what is kept until several events are applied: the pointer and the selection. */
  finish(isPlaying: boolean): void {
    this.#core.emitter.emit('flush')
    this.#replayer.iframe.contentDocument?.documentElement?.classList.toggle('rrweb-paused', !isPlaying)
  }

  /** Removes nodes that mutations have put below too many others: such a tree exhausts the stack of the browser. */
  #limitDepth(added: readonly number[], known: ReadonlySet<number>): void {
    for (const id of added) {
      const node = this.#replayer.getMirror().getNode(id)
      if (node === null || !node.isConnected) continue
      const height = known.has(id) ? heightOf(node) : 0
      if (depthOf(node) + height > DEPTH_MAX) node.parentNode?.removeChild(node)
    }
  }
}

function addedIds({ type, data }: RecordedEvent): readonly number[] {
  if (type !== EVENT.incremental || data.source !== SOURCE.mutation) return []
  return (data.adds as readonly Record<string, unknown>[]).map(({ node }) => (isRecord(node) ? Number(node.id) : -1))
}

function depthOf(node: Node): number {
  let depth = 0
  for (let above = node.parentNode; above !== null && depth <= DEPTH_MAX; above = above.parentNode) depth++
  return depth
}

function heightOf(node: Node): number {
  let height = 0
  for (let level: Node[] = [...node.childNodes]; level.length > 0; height++) {
    level = level.flatMap(child => [...child.childNodes])
  }
  return height
}
