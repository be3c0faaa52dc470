import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'

export interface ProcessUse {
  readonly cpuSeconds: number
  readonly peakMemoryBytes: number
}

export interface ProcessMeter {
  /** Takes the processes as they are now for zero. */
  begin(): void
  /** What each has used since. */
  end(): Record<string, ProcessUse>
}

/** Linux counts CPU in ticks of 10 ms whatever the kernel's own clock (USER_HZ). */
const TICKS_PER_SECOND = 100

/**
 * CPU time and peak memory of processes by pid, all their threads included, and the children they have waited for.
 * Its methods throw when one of the processes has ended: what it used could no longer be told.
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
      // Only Linux keeps the peak itself; elsewhere it is the largest size seen.
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

/** proc(5): fields 14 to 17 of `stat` are utime, stime, cutime, cstime; `VmHWM` is the peak of the resident set. */
function readProc(pid: number): ProcessUse {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0)
  const status = readFileSync(`/proc/${pid}/status`, 'latin1')
  const peakKib = Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0)
  return { cpuSeconds: ticks / TICKS_PER_SECOND, peakMemoryBytes: peakKib * 1024 }
}

/** proc(5): writing 5 to `clear_refs` sets the peak to the present size. Where that is not allowed, it is that of its life. */
function resetPeak(pid: number): void {
  if (process.platform !== 'linux') return
  try {
    writeFileSync(`/proc/${pid}/clear_refs`, '5')
  } catch {
    // See above.
  }
}

/** macOS: `cputime` is `[[days-]hours:]minutes:seconds.hundredths`, `rss` is in KiB. */
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
