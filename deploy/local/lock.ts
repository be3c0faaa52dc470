import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Claims a directory for this process, or returns the pid of the process that has claimed it. Takes over the claim of a
 * process that has ended. On Linux also takes over a claim whose pid now belongs to another program.
 */
export function claimDirectory(directory: string): { release: () => void } | { heldBy: number } {
  const path = join(directory, 'supervisor.pid')
  for (;;) {
    try {
      writeFileSync(path, String(process.pid), { flag: 'wx' })
      return { release: () => rmSync(path, { force: true }) }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
    const pid = Number(readFileSync(path, 'utf8'))
    if (isSupervisor(pid)) return { heldBy: pid }
    rmSync(path, { force: true })
  }
}

function isSupervisor(pid: number): boolean {
  if (!Number.isInteger(pid) || pid <= 0 || pid === process.pid) return false
  try {
    process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('deploy/local/main.ts')
  } catch {
    return true
  }
}
