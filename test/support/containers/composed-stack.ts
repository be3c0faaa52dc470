import type { ChildExit } from '../../../deploy/local/processes/child-process.ts'
import type { LocalSecrets } from '../../../deploy/local/workspace/secrets.ts'
import { type Services, s3Settings, type TestService } from '../services/services.ts'
import { type Composition, type ServiceName, startComposition } from './composition.ts'
import { docker } from './engine.ts'

/** All containers of some services, as a test of processes sees one. */
interface ComposedProcess {
  /** Throws, because a container has no process that a test may look at. */
  readonly pid: number
  kill9(): Promise<void>
  stop(deadlineMs?: number): Promise<ChildExit>
  restart(): Promise<void>
}

/** The containers of compose.yaml behind its proxy, in the form of `Stack` (test/support/services/stack.ts). */
interface ComposedStack {
  readonly services: Services
  readonly secrets: LocalSecrets
  /** Settings with which a process outside of the containers finds the stores. */
  readonly env: Readonly<Record<string, string>>
  readonly edge: ComposedProcess
  readonly workers: ComposedProcess
  readonly api: ComposedProcess
  readonly ingestUrl: string
  readonly grpcUrl: string
  readonly apiUrl: string
  stop(): Promise<void>
}

const STOP_DEADLINE_MS = 10_000
/** Exit code of a process that SIGKILL has ended. */
const KILLED = 137

/** Starts compose.yaml for a test that otherwise starts processes. Clients reach everything at the address of the proxy. */
export async function startComposedStack(): Promise<ComposedStack> {
  const composition = await startComposition()
  const { redisUrl, clickhouseUrl, s3, secrets, url } = composition
  const server = (service: ServiceName, address: string): TestService => {
    const { kill9, stop, restart } = processOf(composition, [service])
    return {
      url: address,
      get pid() {
        return noPid()
      },
      kill9,
      async stop() {
        await stop()
      },
      restart,
    }
  }
  return {
    services: {
      redisUrl,
      clickhouseUrl,
      s3,
      redis: server('redis', redisUrl),
      clickhouse: server('clickhouse', clickhouseUrl),
      s3Server: server('s3', s3.endpoint),
      dir: '',
      stop: async () => {},
    },
    secrets,
    env: {
      REDIS_URL: redisUrl,
      DIRECTORY_REDIS_URL: composition.directoryRedisUrl,
      CLICKHOUSE_URL: clickhouseUrl,
      ...s3Settings(s3),
    },
    edge: processOf(composition, ['edge']),
    workers: processOf(composition, ['workers-telemetry', 'workers-rest', 'workers-deliveries']),
    api: processOf(composition, ['api']),
    ingestUrl: url,
    grpcUrl: url,
    apiUrl: url,
    stop: () => composition.stop(),
  }
}

function processOf(composition: Composition, services: readonly ServiceName[]): ComposedProcess {
  const names = services.flatMap(service => composition.containers(service))
  return {
    get pid() {
      return noPid()
    },
    async kill9() {
      await docker('kill', ...names)
    },
    async stop(deadlineMs = STOP_DEADLINE_MS) {
      await docker('stop', '-t', String(Math.ceil(deadlineMs / 1_000)), ...names)
      const codes = await Promise.all(names.map(name => docker('inspect', '--format', '{{.State.ExitCode}}', name)))
      const code = Math.max(...codes.map(Number))
      return code === KILLED ? { code: null, signal: 'SIGKILL' } : { code, signal: null }
    },
    restart: () => composition.start(...names),
  }
}

function noPid(): never {
  throw new Error('a container has no process id here')
}
