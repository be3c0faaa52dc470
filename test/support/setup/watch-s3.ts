import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { Services } from '../services/services.ts'

const run = promisify(execFile)

const POLL_MS = 3_000
const RESPONSE_MS = 3_000
/** Number of polls in a row without a response after which the server counts as hung, about 10 s. */
const SILENT_POLLS = 3

/**
 * Restarts the S3 server of the tests when it hangs. Its engine, workerd, was seen to spin without end while V8 waited for
 * a collection, once in some twenty runs; every test that used it then ran into its timeout. The objects are on disk, so
 * a new server has them. Returns the function that ends the watch.
 */
export function watchS3({ s3, s3Server }: Services): () => void {
  let silent = 0
  let isPolling = false
  const poll = async () => {
    const responds = await fetch(s3.endpoint, { signal: AbortSignal.timeout(RESPONSE_MS) }).then(
      () => true,
      () => false,
    )
    silent = responds ? 0 : silent + 1
    if (silent < SILENT_POLLS) return
    console.warn('the S3 server of the tests hangs: restarting it')
    // A spinning engine does not notice the end of its parent.
    await run('pkill', ['-KILL', '-P', String(s3Server.pid)]).catch((error: Error) => console.warn(error.message))
    await s3Server.kill9()
    await s3Server.restart()
    silent = 0
  }
  // A poll may take longer than the interval: they must not overlap, or two of them would restart the server.
  const pollAlone = async () => {
    if (isPolling) return
    isPolling = true
    await poll().catch((error: Error) => console.warn(`the S3 server could not be restarted: ${error.message}`))
    isPolling = false
  }
  const timer = setInterval(() => void pollAlone(), POLL_MS)
  return () => clearInterval(timer)
}
