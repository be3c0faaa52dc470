import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ROOT } from '../../../deploy/local/config.ts'
import { type ChildProcess, startChild, untilReady } from '../../../deploy/local/processes/child-process.ts'

/** How a unit is started. */
interface UnitOptions {
  /** Name of the instance, `%i` in the unit. */
  readonly instance: string
  /** Directory that takes the place of /etc/penstock. */
  readonly etc: string
  /** Checkout that takes the place of /opt/penstock. */
  readonly tree?: string
  /** Variables besides those of the files of settings. */
  readonly env?: Readonly<Record<string, string>>
}

const READY_DEADLINE_MS = 60_000

/** Starts a process as systemd does with the unit in docs/operate/install.md, and waits until it is ready. */
export async function startUnit({ instance, etc, tree = ROOT, env = {} }: UnitOptions): Promise<ChildProcess> {
  const unit = await readUnit()
  const place = (text: string) => text.replaceAll('%i', instance).replace('/etc/penstock', etc)
  const files = await Promise.all(unit.EnvironmentFile.map(file => readFile(place(file), 'utf8')))
  const settings: Record<string, string> = { ...Object.assign({}, ...files.map(variablesOf)), ...env }
  const [node, ...args] = (unit.ExecStart[0] ?? '').split(' ')
  if (node !== '/usr/bin/node' || unit.WorkingDirectory[0] !== '/opt/penstock') throw new Error('the unit has changed')
  const child = await startChild({
    command: process.execPath,
    args: args.map(argument => argument.replace(/^\$(\w+)$/, (_, name: string) => settings[name] ?? '')),
    cwd: tree,
    env: { PATH: process.env.PATH, ...settings },
    log: line => process.env.STACK_LOG && console.log(`${instance} ${line}`),
  })
  const port = settings.INGEST_ADMIN_PORT ?? settings.WORKERS_ADMIN_PORT ?? settings.API_ADMIN_PORT
  const isReady = async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).status === 200
  await untilReady(instance, child, isReady, { readyDeadlineMs: READY_DEADLINE_MS })
  return child
}

/** Returns the variables of a file of settings. */
export function variablesOf(file: string): Record<string, string> {
  const lines = file.split('\n').map(line => /^(\w+)=(?:'(.*)'|(.*))$/.exec(line))
  return Object.fromEntries(lines.flatMap(line => (line ? [[line[1] ?? '', line[2] ?? line[3] ?? '']] : [])))
}

/** Returns the lines of the unit that this reads, by name. */
async function readUnit(): Promise<Record<'EnvironmentFile' | 'ExecStart' | 'WorkingDirectory', string[]>> {
  const page = await readFile(join(ROOT, 'docs/operate/install.md'), 'utf8')
  const unit = /```ini\n(\[Unit\][^`]*)```/.exec(page)?.[1] ?? ''
  const named = (name: string) => [...unit.matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].map(line => line[1] ?? '')
  return {
    EnvironmentFile: named('EnvironmentFile'),
    ExecStart: named('ExecStart'),
    WorkingDirectory: named('WorkingDirectory'),
  }
}
