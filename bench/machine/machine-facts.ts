import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { availableParallelism, cpus, loadavg, platform, release, totalmem } from 'node:os'
import { promisify } from 'node:util'
import { GIB } from '../../schemas/units.ts'
import { ROOT } from '../services/start-process.ts'

/** Returns facts of the machine that affect the figures. `dir` is on the disk of the servers' data. */
export async function machineFacts(dir: string): Promise<Record<string, string>> {
  const [processor] = cpus()
  return {
    CPU: `${processor?.model.trim() ?? 'unknown'}, ${availableParallelism()} cores`,
    Memory: `${(totalmem() / GIB).toFixed(1)} GiB`,
    System: `${platform()} ${release()}`,
    'File system of the data': fileSystemOf(dir),
    'Load before': loadavg()
      .map(load => load.toFixed(2))
      .join(', '),
    Node: process.version,
    Commit: await commit(),
    Date: new Date().toISOString().slice(0, 16).replace('T', ' '),
  }
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

/** Returns type and options of the file system: with `discard`, deleting a large file stops fsync meanwhile. */
function fileSystemOf(dir: string): string {
  if (process.platform !== 'linux') return 'unknown'
  const mounts = readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .map(line => line.split(' '))
    .filter(([, at = '/none']) => at === '/' || dir === at || dir.startsWith(`${at}/`))
    .toSorted(([, a = ''], [, b = '']) => b.length - a.length)
  const [, , type, options] = mounts[0] ?? []
  return `${type} (${options})`
}
