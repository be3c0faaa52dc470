import { isMainThread } from 'node:worker_threads'

/**
 * Preloaded into a child. Its stdin is a pipe from the parent, so the end of stdin means that the parent was killed. The
 * child then kills itself at once, which its data is designed to survive. Stopping in order could hang: when no process reads
 * stdout, pino's last flush (sonic-boom's flushSync) repeats a write that fails with EPIPE for ever.
 */
if (isMainThread) {
  process.stdin.once('end', () => process.kill(process.pid, 'SIGKILL'))
  process.stdin.resume()
  process.stdin.unref?.()
}
