import { execFile } from 'node:child_process'
import { fdatasyncSync, openSync, rmSync, writeSync } from 'node:fs'
import { availableParallelism, cpus, loadavg, platform, release, totalmem } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { ROOT } from '../services/start-process.ts'
import { summarize } from './statistics.ts'

/**
 * Returns facts of the machine that affect the figures. Measures fsync in `dir`, where the servers store their data.
 */
export async function machineFacts(dir: string): Promise<Record<string, string>> {
  const [processor] = cpus()
  return {
    CPU: `${processor?.model.trim() ?? 'unknown'}, ${availableParallelism()} cores`,
    Memory: `${(totalmem() / 1024 ** 3).toFixed(1)} GiB`,
    System: `${platform()} ${release()}`,
    'Write and fsync of 32 KiB': measureFsync(dir),
    'Load before': loadavg()
      .map(load => load.toFixed(2))
      .join(', '),
    Node: process.version,
    Commit: await commit(),
    Date: new Date().toISOString().slice(0, 16).replace('T', ' '),
  }
}

/** Measures fsync. Redis waits for one per group commit (`appendfsync always`), so the edge's figures depend on it. */
function measureFsync(dir: string): string {
  const path = join(dir, 'fsync')
  const file = openSync(path, 'w')
  const bytes = Buffer.alloc(32 * 1024, 1)
  const samples = Array.from({ length: 100 }, () => {
    const startedAt = performance.now()
    writeSync(file, bytes)
    fdatasyncSync(file)
    return performance.now() - startedAt
  })
  rmSync(path)
  const { median, max } = summarize(samples)
  return `${median.toFixed(2)} ms, at most ${max.toFixed(1)} ms of 100`
}

async function commit(): Promise<string> {
  const git = async (...args: string[]) => (await promisify(execFile)('git', args, { cwd: ROOT })).stdout.trim()
  try {
    const changes = await git('status', '--porcelain', '--untracked-files=no')
    return `${await git('rev-parse', '--short', 'HEAD')}${changes === '' ? '' : ' with changes'}`
  } catch {
    return 'unknown'
  }
}
