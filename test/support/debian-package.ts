import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { MINUTE_MS } from '../../schemas/units.ts'

const CACHE = fileURLToPath(new URL('../../node_modules/.cache/', import.meta.url))
const DOWNLOAD_DEADLINE_MS = 3 * MINUTE_MS

/** A command, or the reason why it cannot be had. */
type FoundCommand = { readonly command: string } | { readonly fault: string }

/**
 * Finds a command in PATH, else in Debian's package, which is downloaded and unpacked into the cache of this checkout. It is not
 * installed, because that would start a service. `path` is where the command is in the package.
 */
export function findCommand(packageName: string, path: string): FoundCommand {
  const name = path.slice(path.lastIndexOf('/') + 1)
  if (succeeds('sh', ['-c', 'command -v "$0"', name])) return { command: name }
  const command = join(CACHE, packageName, path)
  const fault = existsSync(command) ? undefined : unpackPackage(packageName)
  return fault === undefined ? { command } : { fault }
}

/** Downloads and unpacks a package. Returns the reason if that fails. */
function unpackPackage(name: string): string | undefined {
  if (!succeeds('sh', ['-c', 'command -v apt-get && command -v dpkg-deb'])) {
    return `${name} is not in PATH, and there is no apt-get to download it`
  }
  const target = join(CACHE, name)
  mkdirSync(dirname(target), { recursive: true })
  const dir = mkdtempSync(`${target}-`)
  const download = () => succeeds('sh', ['-c', 'apt-get -qq download "$0" && dpkg-deb -x "$0"_*.deb .', name], dir)
  try {
    if (!download() && !(updateLists() && download())) return `the package ${name} could not be downloaded`
    rmSync(target, { recursive: true, force: true })
    renameSync(dir, target)
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
