import { spawnSync } from 'node:child_process'
import { MINUTE_MS } from '../../../schemas/units.ts'

const PACKAGES = ['radosgw', 'ceph-mon', 'ceph-osd', 'ceph-common']
const COMMANDS = ['radosgw', 'radosgw-admin', 'ceph', 'ceph-mon', 'ceph-osd', 'monmaptool']
const INSTALL_DEADLINE_MS = 10 * MINUTE_MS

/** Installs the gateway of Ceph and its dependencies from the packages of Debian. Returns the reason if that is not possible. */
export function installCeph(): string | undefined {
  if (hasCommands()) return undefined
  if (!succeeds('sh', ['-c', 'command -v apt-get']))
    return 'Ceph is not installed, and there is no apt-get to install it'
  const before = process.getuid?.() === 0 ? [] : ['sudo', '-n']
  if (before.length > 0 && !succeeds('sudo', ['-n', 'true'])) return 'Ceph is not installed, and apt-get needs root'
  console.log(`installing ${PACKAGES.join(', ')} (apt-get)`)
  const fault = aptGet(before, ['update']) ?? aptGet(before, ['install', '-y', '--no-install-recommends', ...PACKAGES])
  if (hasCommands()) return undefined
  return `Ceph could not be installed: ${fault ?? 'its packages contain no gateway'}`
}

function hasCommands(): boolean {
  return COMMANDS.every(command => succeeds('sh', ['-c', 'command -v "$0"', command]))
}

/** Runs apt-get; returns its last error line if it fails. */
function aptGet(before: string[], args: string[]): string | undefined {
  const [command = 'env', ...rest] = [...before, 'env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', '-qq', ...args]
  const { status, stderr } = spawnSync(command, rest, {
    stdio: ['ignore', 'ignore', 'pipe'],
    encoding: 'utf8',
    timeout: INSTALL_DEADLINE_MS,
  })
  return status === 0 ? undefined : (stderr.trim().split('\n').at(-1) ?? `apt-get ${args[0]} failed`)
}

function succeeds(command: string, args: string[]): boolean {
  return spawnSync(command, args, { stdio: 'ignore' }).status === 0
}
