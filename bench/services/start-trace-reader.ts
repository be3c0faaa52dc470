import { Agent, request } from 'node:http'
import { Redis } from 'ioredis'
import { importPKCS8, SignJWT } from 'jose'
import { freePort } from '../../deploy/local/ports.ts'
import { AUTH_AUDIENCE, AUTH_ISSUER, type LocalSecrets, loadSecrets } from '../../deploy/local/workspace/secrets.ts'
import { PERMISSIONS } from '../../schemas/records/directory.ts'
import { createDirectory } from '../../shared/directory/directory.ts'
import { type TraceTarget, WORKSPACES, workspaceId } from '../data/stored-traces.ts'
import type { ScenarioContext } from '../support/scenario.ts'
import { BodyCounter } from './body-counter.ts'
import { startProcess } from './start-process.ts'
import { BENCH_DATABASE, type BenchClickHouse, type BenchRedis } from './start-stores.ts'

/** How a trace is read: as a trace of a finding (docs/api/findings.md#trace), or by its id alone (docs/api/traces.md). */
export type ReadBy = 'finding' | 'id'

/** A client of the API. */
export interface TraceReader {
  /** Pid of the API. */
  readonly pid: number
  /** Reads a trace and returns the body. Throws unless the status is 200. */
  read(target: TraceTarget, by: ReadBy): Promise<string>
  /** Reads a trace and returns the bytes of the body, which cost this process next to nothing (body-counter.ts). */
  receive(target: TraceTarget, by: ReadBy): Promise<number>
  /** Reads any path of the API as a member of one of the filled workspaces. */
  get(workspaceId: string, path: string): Promise<string>
}

const TIMEOUT_MS = 20_000
const TOKEN_LIFETIME_SECONDS = 3_600

/**
 * Starts the API, and creates a client with a connection and a session token for each of the filled workspaces. There is no
 * object store: only dead letters need one.
 */
export async function startTraceReader(
  context: ScenarioContext,
  redis: BenchRedis,
  clickhouse: BenchClickHouse,
): Promise<TraceReader> {
  const secrets = await loadSecrets(context.dir)
  const directoryUrl = redis.url(1)
  const tokens = await putWorkspaces(directoryUrl, secrets)
  const [port, adminPort] = [await freePort(), await freePort()]
  const child = await startProcess(context, {
    script: 'api/main.ts',
    env: {
      REDIS_URL: redis.url(0),
      DIRECTORY_REDIS_URL: directoryUrl,
      CLICKHOUSE_URL: clickhouse.url,
      CLICKHOUSE_DATABASE: BENCH_DATABASE,
      AUTH_PUBLIC_KEY: secrets.authPublicKey,
      KEY_PEPPER: secrets.keyPepper,
      AUTH_ISSUER,
      AUTH_AUDIENCE,
      API_PORT: String(port),
      API_ADMIN_PORT: String(adminPort),
    },
    readyUrl: `http://127.0.0.1:${adminPort}/readyz`,
  })
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const counter = new BodyCounter(port, TIMEOUT_MS)
  context.onEnd(() => {
    agent.destroy()
    counter.close()
  })
  const getAs = (workspaceId: string, path: string) =>
    get({ agent, port, path, headers: { authorization: `Bearer ${tokens.get(workspaceId)}` } })
  const pathOf = ({ findingId, traceId }: TraceTarget, by: ReadBy) =>
    `/v3${by === 'id' ? '' : `/findings/${findingId}`}/traces/${traceId}`
  return {
    pid: child.pid,
    read: (target, by) => getAs(target.workspaceId, pathOf(target, by)),
    receive: (target, by) => counter.count(pathOf(target, by), tokens.get(target.workspaceId) ?? ''),
    get: getAs,
  }
}

function get(options: { agent: Agent; port: number; path: string; headers: Record<string, string> }): Promise<string> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', ...options, signal: AbortSignal.timeout(TIMEOUT_MS) }, response => {
      const chunks: Buffer[] = []
      response.on('data', chunk => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString()
        if (response.statusCode === 200) resolve(text)
        else reject(new Error(`the API returned ${response.statusCode}: ${text}`))
      })
    })
    sent.on('error', reject)
    sent.end()
  })
}

/** Stores the filled workspaces in the directory. Returns a member's token for each of them, by workspace id. */
async function putWorkspaces(directoryUrl: string, secrets: LocalSecrets): Promise<ReadonlyMap<string, string>> {
  const redis = new Redis(directoryUrl)
  try {
    const store = createDirectory(redis)
    const tokens = new Map<string, string>()
    const { userId, createdAt } = secrets
    for (const id of Array.from({ length: WORKSPACES }, (_, number) => workspaceId(number))) {
      const slug = id.replace('_', '-')
      await store.putWorkspace({ version: 1, id, slug, name: slug, createdAt })
      await store.putMember({ version: 1, workspaceId: id, userId, permissions: [...PERMISSIONS] })
      tokens.set(id, await signToken(secrets, slug))
    }
    return tokens
  } finally {
    redis.disconnect()
  }
}

async function signToken({ authPrivateKey, userId }: LocalSecrets, org: string): Promise<string> {
  return new SignJWT({ org })
    .setProtectedHeader({ alg: 'EdDSA' })
    .setSubject(userId)
    .setIssuer(AUTH_ISSUER)
    .setAudience(AUTH_AUDIENCE)
    .setExpirationTime(Math.floor(Date.now() / 1_000) + TOKEN_LIFETIME_SECONDS)
    .sign(await importPKCS8(authPrivateKey, 'EdDSA'))
}
