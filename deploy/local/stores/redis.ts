import { spawn } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { startChild, untilReady } from '../processes/child-process.ts'
import { writePrivateFile } from '../workspace/private-file.ts'
import type { LocalService, LocalServiceOptions } from './service.ts'

/** Options of a local Redis. */
interface RedisOptions extends LocalServiceOptions {
  /** Memory limit in the notation of Redis; the edge accepts nothing above 70 % of it. Default: `2gb`. */
  maxMemory?: string
  /** Further settings, as in redis.conf. */
  settings?: Readonly<Record<string, string>>
  /** Password of the only user, in hex or another text without spaces and quotes. */
  password: string
}

/**
 * Starts Redis with every acknowledged write on disk: it syncs before it answers, even during a rewrite of its log. Its
 * settings are in a file that only this user may read, because every user of the machine sees the arguments of a process.
 */
export async function startRedis(options: RedisOptions): Promise<LocalService> {
  await mkdir(options.dir, { recursive: true })
  const settings: Record<string, string> = {
    bind: '127.0.0.1',
    port: String(options.port),
    dir: options.dir,
    requirepass: options.password,
    appendonly: 'yes',
    appendfsync: 'always',
    'no-appendfsync-on-rewrite': 'no',
    // With the default of 64 MB, a busy Redis would fork to rewrite its log several times a second. Each rewrite deletes the
    // old log, and a file system that discards freed blocks stops fsync meanwhile: for 0.3 s when 512 MB are deleted.
    'auto-aof-rewrite-min-size': '4gb',
    maxmemory: options.maxMemory ?? '2gb',
    'maxmemory-policy': 'noeviction',
    save: '',
    daemonize: 'no',
    loglevel: 'warning',
    ...options.settings,
  }
  const file = join(options.dir, 'redis.conf')
  const lines = Object.entries(settings).map(([name, value]) => `${name} ${JSON.stringify(value)}\n`)
  await writePrivateFile(file, lines.join(''))
  const child = await startChild({ command: 'redis-server', args: [file], log: options.log })
  endWithThisProcess(child.pid, child.exited)
  await untilReady('Redis', child, () => isPongFrom(options), options)
  return Object.assign(child, { url: redisUrl(options) })
}

/** Returns the URL of a local Redis, with its password. */
export function redisUrl({ port, password }: Pick<RedisOptions, 'port' | 'password'>): string {
  return `redis://default:${password}@127.0.0.1:${port}`
}

/** Sends PING over a plain socket. Redis answers `-LOADING` while it loads its log, and is not ready then. */
function isPongFrom({ port, password }: Pick<RedisOptions, 'port' | 'password'>): Promise<boolean> {
  return new Promise(resolve => {
    let answer = ''
    const socket = connect({ port, host: '127.0.0.1', timeout: 1_000 }, () =>
      socket.write(`AUTH ${password}\r\nPING\r\n`),
    )
    const done = (ready: boolean) => {
      socket.destroy()
      resolve(ready)
    }
    socket.on('data', data => {
      answer += data.toString()
      if (answer.split('\r\n').length > 2) done(answer === '+OK\r\n+PONG\r\n')
    })
    socket.once('error', () => done(false))
    socket.once('timeout', () => done(false))
  })
}

/** Ends Redis when this process is killed, which Redis does not notice itself: a shell waits on a pipe from here. */
export function endWithThisProcess(pid: number, exited: Promise<unknown>): void {
  const watcher = spawn('sh', ['-c', 'read -r _; kill "$1"', 'sh', String(pid)], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  watcher.on('error', () => {})
  watcher.stdin.on('error', () => {})
  void exited.then(() => watcher.kill('SIGKILL'))
}
