import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The commands of a Prometheus. */
export interface Prometheus {
  readonly prometheus: string
  readonly promtool: string
}

const CACHE = fileURLToPath(new URL('../../../node_modules/.cache/prometheus', import.meta.url))
const DOWNLOAD_DEADLINE_MS = 3 * 60_000

/**
 * Returns the commands of Prometheus: those in PATH, else those of Debian's package, which is downloaded and unpacked into the
 * cache of this checkout. It is not installed, because that would start a service. Returns the reason if it cannot be had.
 */
export function findPrometheus(): Prometheus | string {
  if (['prometheus', 'promtool'].every(command => succeeds('sh', ['-c', 'command -v "$0"', command]))) {
    return { prometheus: 'prometheus', promtool: 'promtool' }
  }
  const unpacked = join(CACHE, 'usr/bin')
  const found = { prometheus: join(unpacked, 'prometheus'), promtool: join(unpacked, 'promtool') }
  if (!existsSync(found.promtool)) {
    const fault = unpackPackage()
    if (fault !== undefined) return fault
  }
  return found
}

/** Downloads and unpacks the package. Returns the reason if that fails. */
function unpackPackage(): string | undefined {
  if (!succeeds('sh', ['-c', 'command -v apt-get && command -v dpkg-deb'])) {
    return 'Prometheus is not in PATH, and there is no apt-get to download it'
  }
  mkdirSync(join(CACHE, '..'), { recursive: true })
  const dir = mkdtempSync(`${CACHE}-`)
  const download = () =>
    succeeds('sh', ['-c', 'apt-get -qq download prometheus && dpkg-deb -x prometheus_*.deb .'], dir)
  try {
    if (!download() && !(updateLists() && download())) return 'the package prometheus could not be downloaded'
    rmSync(CACHE, { recursive: true, force: true })
    renameSync(dir, CACHE)
    return undefined
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

/** Reads the lists of packages again, which a fresh machine does not have. */
function updateLists(): boolean {
  const [command = '', ...before] = process.getuid?.() === 0 ? ['apt-get'] : ['sudo', '-n', 'apt-get']
  return succeeds(command, [...before, '-qq', 'update'])
}

function succeeds(command: string, args: string[], cwd?: string): boolean {
  return spawnSync(command, args, { stdio: 'ignore', timeout: DOWNLOAD_DEADLINE_MS, ...(cwd && { cwd }) }).status === 0
}
