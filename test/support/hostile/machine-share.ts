import { readdirSync, readFileSync } from 'node:fs'

/** Ticks of CPU time since the start: of the whole machine with and without idle time, and of this test with its children. */
interface CpuTicks {
  readonly all: number
  readonly busy: number
  readonly own: number
}

/**
 * Measures which part of the machine was left to this test and its servers. Time limits are divided by it, so that other
 * programs of the machine do not fail an attack that the service has withstood.
 */
export class MachineShare {
  readonly #before = readTicks()

  /** Returns the part of the CPU time since the construction that other programs did not use, from 0.1 to 1. */
  left(): number {
    const now = readTicks()
    const all = now.all - this.#before.all
    const others = now.busy - this.#before.busy - (now.own - this.#before.own)
    return all <= 0 ? 1 : Math.min(1, Math.max(0.1, 1 - others / all))
  }
}

function readTicks(): CpuTicks {
  const [user = 0, nice = 0, system = 0, idle = 0, ioWait = 0, irq = 0, softIrq = 0, steal = 0] = readFileSync(
    '/proc/stat',
    'utf8',
  )
    .split('\n', 1)
    .join('')
    .split(/\s+/)
    .slice(1)
    .map(Number)
  const busy = user + nice + system + irq + softIrq + steal
  return { all: busy + idle + ioWait, busy, own: ownTicks() }
}

/** Sums up the CPU time of the process that runs vitest and of its descendants, ended ones included. */
function ownTicks(): number {
  const processes = new Map<number, { parent: number; ticks: number }>()
  for (const name of readdirSync('/proc')) {
    const pid = Number(name)
    if (!Number.isInteger(pid)) continue
    const fields = statFields(pid)
    if (fields === undefined) continue
    const ticks = fields.slice(11, 15).reduce((sum, text) => sum + Number(text), 0)
    processes.set(pid, { parent: Number(fields[1]), ticks })
  }
  const isOwn = (pid: number): boolean => {
    for (let at = pid; at > 1; at = processes.get(at)?.parent ?? 0)
      if (at === process.ppid || at === process.pid) return true
    return false
  }
  return [...processes].reduce((sum, [pid, { ticks }]) => (isOwn(pid) ? sum + ticks : sum), 0)
}

/** Returns the fields of `/proc/PID/stat` after the name, which may contain anything: state, parent, and so on. */
function statFields(pid: number): string[] | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return text.slice(text.lastIndexOf(')') + 2).split(' ')
  } catch {
    return undefined
  }
}
