import { cp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '../../../deploy/local/ports.ts'
import { answers, startChild, untilReady } from '../../../deploy/local/processes/child-process.ts'
import { findCommand } from '../debian-package.ts'
import type { CertificateFiles } from './certificates.ts'

const CONFIGURATION = fileURLToPath(new URL('../../../deploy/proxy/nginx', import.meta.url))

/** A running nginx with the configuration of `deploy/proxy/nginx`. */
export interface RunningProxy {
  readonly baseUrl: string
  readonly port: number
  /** Returns the lines of the access log so far. */
  accessLog(): Promise<readonly AccessLogLine[]>
  /** Text of the access log so far. */
  accessLogText(): Promise<string>
  /** Lines of the error log so far. */
  readonly errorLog: readonly string[]
  stop(): Promise<void>
}

/** The members of a line of the access log that tests read. */
interface AccessLogLine {
  readonly client: string
  readonly method: string
  readonly path: string
  readonly protocol: string
  readonly status: number
  readonly requestId: string
}

/** The parts that differ between installations. */
interface ProxyOptions {
  /** Directory of the files of this nginx. */
  readonly dir: string
  /** Addresses as `host:port`. */
  readonly edges: readonly string[]
  readonly apis: readonly string[]
  /** Addresses of OTLP/gRPC. Without one, no process listens. */
  readonly grpc?: readonly string[]
  /** Certificate for the name `localhost`. */
  readonly certificate: CertificateFiles
  /** Requests in progress that one address may have, by default as many as in the file. */
  readonly requestsPerAddress?: number
  /** Networks of trusted proxies. */
  readonly trusted?: readonly string[]
}

/** Returns the command of nginx: the one in PATH, else that of Debian's package. */
export function findNginx() {
  return findCommand('nginx', 'usr/sbin/nginx')
}

/** Starts nginx with the files of `deploy/proxy/nginx`, in which only what an installation decides is replaced. */
export async function startNginx(command: string, options: ProxyOptions): Promise<RunningProxy> {
  const { dir, certificate, edges, apis, grpc = [], requestsPerAddress = 1_000, trusted = [] } = options
  const port = await freePort()
  await cp(CONFIGURATION, dir, { recursive: true })
  const logFile = join(dir, 'access.log')
  await change(join(dir, 'site.conf'), [
    ['listen 8443 ssl http2;', `listen 127.0.0.1:${port} ssl http2;`],
    ['listen [::]:8443 ssl http2;', ''],
    ['tls/certificate.pem', certificate.certificate],
    ['tls/key.pem', certificate.key],
    ['/dev/stdout', logFile],
    ['limit_conn penstock_address 1000;', `limit_conn penstock_address ${requestsPerAddress};`],
    ['#set_real_ip_from 10.0.0.0/8;', trusted.map(network => `set_real_ip_from ${network};\n`).join('')],
  ])
  const serversOf = (addresses: readonly string[]) =>
    addresses.map(address => `server ${address} max_fails=1 fail_timeout=2s;`).join('\n')
  await change(join(dir, 'upstreams.conf'), [
    ['server 127.0.0.1:4318 max_fails=1 fail_timeout=2s;', serversOf(edges)],
    ['server 127.0.0.1:4300 max_fails=1 fail_timeout=2s;', serversOf(apis)],
    [
      'server 127.0.0.1:4317 max_fails=1 fail_timeout=2s;',
      serversOf(grpc.length > 0 ? grpc : [`127.0.0.1:${await freePort()}`]),
    ],
  ])
  const errorLog: string[] = []
  const child = await startChild({
    command,
    args: ['-e', 'stderr', '-p', `${dir}/`, '-c', join(dir, 'nginx.conf'), '-g', 'daemon off;'],
    log: line => void errorLog.push(line),
  })
  await untilReady('nginx', child, () => answers(`https://localhost:${port}/proxy-livez`, [204]), {
    readyDeadlineMs: 30_000,
  }).catch(error => {
    throw new Error(`nginx did not start:\n${errorLog.slice(-20).join('\n')}`, { cause: error })
  })
  const accessLogText = () => readFile(logFile, 'utf8').catch(() => '')
  return {
    baseUrl: `https://localhost:${port}`,
    port,
    errorLog,
    accessLogText,
    async accessLog() {
      const lines = (await accessLogText()).split('\n').filter(line => line !== '')
      return lines.map(line => JSON.parse(line) as AccessLogLine)
    },
    stop: () => child.stop(5_000),
  }
}

/** Replaces texts of a file, each of which must occur. */
async function change(file: string, replacements: readonly (readonly [from: string, to: string])[]): Promise<void> {
  let text = await readFile(file, 'utf8')
  for (const [from, to] of replacements) {
    if (!text.includes(from)) throw new Error(`${file} has no "${from}"`)
    text = text.replace(from, () => to)
  }
  await writeFile(file, text)
}
