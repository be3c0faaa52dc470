import { signal } from '@preact/signals'
import type { StageOrder, StageReport } from '../stage/messages.ts'
import { BASE } from '../state/router.ts'
import { checkedReport } from './checked-report.ts'

/** Address of the document in which recordings are played. */
const PLAYER_DOCUMENT = `${BASE}player`
const START_DEADLINE_MS = 15_000

/** The connection to the stage. */
export interface StageChannel {
  send(order: StageOrder): void
  close(): void
}

/** Size of the recorded page, in its pixels. */
export const DEFAULT_SIZE = { width: 1_024, height: 768 }
/** Size of the recorded page. */
export type PictureSize = typeof DEFAULT_SIZE

/**
 * Connects to the document of the player in a frame, once that asks for it. The frame gets one port and nothing else. Its
 * reports are checked, because it handles what unknown clients have sent.
 */
export function openStage(
  frame: HTMLIFrameElement,
  onReport: (report: StageReport) => void,
  onFailed: () => void,
): StageChannel {
  const { port1, port2 } = new MessageChannel()
  const isReady = signal(false)
  const waiting: StageOrder[] = []
  const deadline = setTimeout(onFailed, START_DEADLINE_MS)
  const connect = ({ source, origin, data }: MessageEvent) => {
    if (source !== frame.contentWindow || origin !== location.origin || data !== 'ready') return
    removeEventListener('message', connect)
    frame.contentWindow?.postMessage('connect', location.origin, [port2])
  }
  addEventListener('message', connect)
  port1.onmessage = ({ data }: MessageEvent<unknown>) => {
    const report = checkedReport(data)
    if (report === undefined) return
    if (report.kind === 'ready') {
      clearTimeout(deadline)
      isReady.value = true
      for (const order of waiting.splice(0)) port1.postMessage(order)
    }
    onReport(report)
  }
  frame.src = PLAYER_DOCUMENT
  return {
    send: order => (isReady.value ? port1.postMessage(order) : waiting.push(order)),
    close() {
      clearTimeout(deadline)
      removeEventListener('message', connect)
      port1.close()
    },
  }
}
