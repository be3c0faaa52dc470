import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'

/** CPU time and peak memory of a process during a measurement. */
export interface ProcessUse {
  readonly cpuSeconds: number
  readonly peakMemoryBytes: number
}

/** Meter of several processes. */
interface ProcessMeter {
  /** Starts the measurement. */
  begin(): void
  /** Returns what each process has used since `begin`. */
  end(): Record<string, ProcessUse>
}

/** Linux reports CPU time in ticks of 10 ms (USER_HZ), independent of the kernel's clock. */
const TICKS_PER_SECOND = 100

/**
 * Measures CPU time and peak memory of processes, including all threads and the children they have waited for. Its
 * methods throw if a process has ended, because its use is then unknown.
 */
export function meterProcesses(pids: Readonly<Record<string, number>>): ProcessMeter {
  const atStart = new Map<string, number>()
  const peaks = new Map<string, number>()
  let sampler: NodeJS.Timeout | undefined

  function samplePeaks(): void {
    for (const [name, pid] of Object.entries(pids)) {
      peaks.set(name, Math.max(peaks.get(name) ?? 0, read(name, pid).peakMemoryBytes))
    }
  }

  return {
    begin() {
      peaks.clear()
      for (const [name, pid] of Object.entries(pids)) {
        atStart.set(name, read(name, pid).cpuSeconds)
        resetPeak(pid)
      }
      clearInterval(sampler)
      // Only Linux records the peak. On other systems it is the largest sample.
      if (process.platform !== 'linux') sampler = setInterval(samplePeaks, 100).unref()
    },
    end() {
      clearInterval(sampler)
      samplePeaks()
      return Object.fromEntries(
        Object.entries(pids).map(([name, pid]) => [
          name,
          { cpuSeconds: read(name, pid).cpuSeconds - (atStart.get(name) ?? 0), peakMemoryBytes: peaks.get(name) ?? 0 },
        ]),
      )
    },
  }
}

function read(name: string, pid: number): ProcessUse {
  try {
    return process.platform === 'linux' ? readProc(pid) : readPs(pid)
  } catch (cause) {
    throw new Error(`the process "${name}" (${pid}) has ended while it was measured`, { cause })
  }
}

/**
 * Reads /proc. Fields 14 to 17 of `stat` are utime, stime, cutime and cstime; `VmHWM` is the peak resident set
 * (proc(5)).
 */
function readProc(pid: number): ProcessUse {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0)
  const status = readFileSync(`/proc/${pid}/status`, 'latin1')
  const peakKib = Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0)
  return { cpuSeconds: ticks / TICKS_PER_SECOND, peakMemoryBytes: peakKib * 1024 }
}

/**
 * Resets the peak by writing 5 to `clear_refs` (proc(5)). Without that permission the peak covers the life of the
 * process.
 */
function resetPeak(pid: number): void {
  if (process.platform !== 'linux') return
  try {
    writeFileSync(`/proc/${pid}/clear_refs`, '5')
  } catch {
    // No permission: the peak covers the life of the process.
  }
}

/** Runs ps for macOS. `cputime` is `[[days-]hours:]minutes:seconds.hundredths`, `rss` is in KiB. */
function readPs(pid: number): ProcessUse {
  const [time = '0', rss = '0'] = execFileSync('ps', ['-o', 'cputime=,rss=', '-p', String(pid)])
    .toString()
    .trim()
    .split(/\s+/)
  const cpuSeconds = time.split(/[-:]/).reduce((sum, part, i, parts) => {
    const unit = [1, 60, 3600, 86_400][parts.length - 1 - i] ?? 0
    return sum + Number(part) * unit
  }, 0)
  return { cpuSeconds, peakMemoryBytes: Number(rss) * 1024 }
}
