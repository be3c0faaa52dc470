import { isMainThread } from 'node:worker_threads'

/**
 * Preloaded into a child: its stdin is a pipe from the parent, so the end of stdin means that the parent was killed.
 * What survives that is made for it, so the child goes the same way at once. Asking it to stop could hang it: with
 * nobody reading its stdout, pino's last flush (sonic-boom's flushSync) repeats a write that fails with EPIPE for ever.
 */
if (isMainThread) {
  process.stdin.once('end', () => process.kill(process.pid, 'SIGKILL'))
  process.stdin.resume()
  process.stdin.unref?.()
}
