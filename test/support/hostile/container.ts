import { readFileSync } from 'node:fs'
import { KIB, MIB } from '../../../schemas/units.ts'

const SAMPLE_MS = 100

/** A process that runs with the memory of a small container. */
interface Container {
  readonly name: string
  readonly pid: number
  readonly limitBytes: number
}

/** Memory and fate of a container's process. */
export interface ContainerReport {
  readonly name: string
  /** Largest sum of anonymous memory of the process and its children, in MiB. */
  readonly peakMib: number
  /** Samples of that sum in bytes, in order of time. */
  readonly samples: readonly number[]
  /** Why the process ended, or undefined if it runs. */
  readonly ended: string | undefined
}

/**
 * Does what the kernel does with a container: kills a process that needs more memory than its container has. Memory is the
 * anonymous memory of the process and its children, because the kernel takes file pages back before it kills. Sampled
 * every 100 ms, since the memory controller of cgroups is not available to tests everywhere.
 */
export class ContainerWatch {
  readonly #containers: readonly Container[]
  readonly #samples = new Map<string, number[]>()
  readonly #ended = new Map<string, string>()
  readonly #timer: NodeJS.Timeout

  constructor(containers: readonly Container[]) {
    this.#containers = containers
    for (const { name } of containers) this.#samples.set(name, [])
    this.#timer = setInterval(() => this.#sample(), SAMPLE_MS)
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  /** Whether any process has ended. */
  get hasEnded(): boolean {
    return this.#ended.size > 0
  }

  reports(): ContainerReport[] {
    this.#sample()
    return this.#containers.map(({ name }) => {
      const samples = this.#samples.get(name) ?? []
      return {
        name,
        samples,
        peakMib: Math.ceil(samples.reduce((most, bytes) => Math.max(most, bytes), 0) / MIB),
        ended: this.#ended.get(name),
      }
    })
  }

  #sample(): void {
    for (const { name, pid, limitBytes } of this.#containers) {
      if (this.#ended.has(name)) continue
      const bytes = treeBytes(pid)
      if (bytes === undefined) {
        this.#ended.set(name, 'it ended by itself')
        continue
      }
      this.#samples.get(name)?.push(bytes)
      if (bytes <= limitBytes) continue
      this.#ended.set(name, `it needed ${Math.ceil(bytes / MIB)} MiB of ${limitBytes / MIB} MiB`)
      process.kill(pid, 'SIGKILL')
    }
  }
}

/** Returns the anonymous memory of a process and its descendants, or undefined if the process has ended. */
function treeBytes(pid: number): number | undefined {
  const own = anonymousBytes(pid)
  if (own === undefined) return undefined
  return childrenOf(pid).reduce((sum, child) => sum + (treeBytes(child) ?? 0), own)
}

function anonymousBytes(pid: number): number | undefined {
  try {
    const kib = /^RssAnon:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
    return kib === undefined ? undefined : Number(kib) * KIB
  } catch {
    return undefined
  }
}

/** Every thread of a process can have children. */
function childrenOf(pid: number): number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)
  } catch {
    return []
  }
}
