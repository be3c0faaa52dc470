import type { Logger } from '../logger.ts'
import type { Health } from './health.ts'

const LOOK_EVERY_MS = 1_000

/**
 * Logs why a process is not ready, once for each reason, and that it is ready: no prober may ask, and logs are where operators
 * look first. Reasons that differ only in numbers are one, and one of the first second is that the process starts. `check` returns
 * what `/readyz` answers, and must not reject. Returns a function that ends it.
 */
export function logReadiness(check: () => Promise<Health>, logger: Logger): () => void {
  let known: string | undefined
  let looks = 0
  const look = async () => {
    const health = await check()
    const text = textOf(health)
    const form = text.replaceAll(/\d+/g, '#')
    looks += 1
    if (form === known || (looks === 1 && health !== true)) return
    known = form
    if (health === true) logger.info(text)
    else logger.warn(text)
  }
  const timer = setInterval(() => void look(), LOOK_EVERY_MS).unref()
  return () => clearInterval(timer)
}

function textOf(health: Health): string {
  if (health === true) return 'ready'
  return typeof health === 'object' ? `ready, but ${health.note}` : `not ready: ${health === false ? 'not ok' : health}`
}
