import { spawn } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { connect } from 'node:net'
import { startChild, untilReady } from '../processes/child-process.ts'
import type { LocalService, LocalServiceOptions } from './service.ts'

export interface RedisOptions extends LocalServiceOptions {
  /** What Redis may hold; the edge admits nothing above 70 % of it. As Redis writes it; default `2gb`. */
  maxMemory?: string
}

/** Redis with every acknowledged write on disk: fsync before the answer, also while the log is being rewritten. */
export async function startRedis(options: RedisOptions): Promise<LocalService> {
  await mkdir(options.dir, { recursive: true })
  const settings: Record<string, string> = {
    bind: '127.0.0.1',
    port: String(options.port),
    dir: options.dir,
    appendonly: 'yes',
    appendfsync: 'always',
    'no-appendfsync-on-rewrite': 'no',
    // At the default of 64 MB a busy log would be rewritten, by a fork, several times a second.
    'auto-aof-rewrite-min-size': '512mb',
    maxmemory: options.maxMemory ?? '2gb',
    'maxmemory-policy': 'noeviction',
    save: '',
    daemonize: 'no',
    loglevel: 'warning',
  }
  const child = await startChild({
    command: 'redis-server',
    args: Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]),
    log: options.log,
  })
  endWithThisProcess(child.pid, child.exited)
  await untilReady('Redis', child, () => isPongFrom(options.port), options)
  return Object.assign(child, { url: `redis://127.0.0.1:${options.port}` })
}

/** PING by hand: while Redis loads its log it answers `-LOADING`, which is not ready. */
function isPongFrom(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect({ port, host: '127.0.0.1', timeout: 1_000 }, () => socket.write('PING\r\n'))
    const done = (ready: boolean) => {
      socket.destroy()
      resolve(ready)
    }
    socket.once('data', answer => done(answer.toString().startsWith('+PONG')))
    socket.once('error', () => done(false))
    socket.once('timeout', () => done(false))
  })
}

/** Redis does not notice that its parent was killed; a shell that waits on a pipe from this process ends it then. */
function endWithThisProcess(pid: number, exited: Promise<unknown>): void {
  const watcher = spawn('sh', ['-c', 'read -r _; kill "$1"', 'sh', String(pid)], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  watcher.on('error', () => {})
  watcher.stdin.on('error', () => {})
  void exited.then(() => watcher.kill('SIGKILL'))
}
