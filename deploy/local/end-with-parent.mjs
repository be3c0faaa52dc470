import { isMainThread } from 'node:worker_threads'

/** Preloaded into a child: its stdin is a pipe from the parent, so the end of stdin means that the parent was killed. */
const LAST_RESORT_MS = 5_000

if (isMainThread) {
  process.stdin.once('end', () => {
    process.kill(process.pid, 'SIGTERM')
    setTimeout(() => process.kill(process.pid, 'SIGKILL'), LAST_RESORT_MS).unref()
  })
  process.stdin.resume()
  process.stdin.unref?.()
}
