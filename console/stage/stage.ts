import looks from '@rrweb/replay/dist/style.css?inline'
import type { StageOrder, StageReport } from './messages.ts'
import { Performance } from './performance.ts'

/**
 * Script of the stage: the document in which a recording is played (docs/decisions/042-player.md). It gets one port from the
 * document around it, and neither has nor needs anything else: no token, no request.
 */
addEventListener('message', function connect({ source, ports }) {
  const [port] = ports
  if (source !== parent || port === undefined) return
  removeEventListener('message', connect)
  const report = (message: StageReport) => port.postMessage(message)
  const style = document.createElement('style')
  style.textContent = `${looks} .replayer-wrapper > iframe { border: 0; background: #fff }`
  document.head.append(style)
  const performance = new Performance(document.body, report)
  port.onmessage = ({ data }: MessageEvent<StageOrder>) => performance.order(data)
  report({ kind: 'ready' })
})
