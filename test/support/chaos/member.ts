import { freePort } from '../../../deploy/local/ports.ts'
import type { ChildProcess } from '../../../deploy/local/processes/child-process.ts'
import { startNodeProcess } from '../../../deploy/local/processes/processes.ts'

/** A process of the product that can be killed, stopped, frozen and started again. */
export interface Member {
  readonly pid: number
  /** Port for clients, if it has one. */
  readonly port: number | undefined
  /** Ends that no call of this object has caused. */
  readonly unexpectedEnds: readonly string[]
  kill9(): Promise<void>
  /** Sends SIGTERM, and SIGKILL after the deadline. */
  stop(): Promise<void>
  /** Starts the process if it is not running, and waits until it is ready. */
  restart(): Promise<void>
}

const STOP_DEADLINE_MS = 8_000

/** Starts edge or workers, of this tree or at an absolute path, on ports of its own, and waits until it is ready. */
export async function startMember(script: string, settings: Readonly<Record<string, string>>): Promise<Member> {
  const [port, adminPort, grpcPort] = [await freePort(), await freePort(), await freePort()]
  const isEdge = script.endsWith('ingest/main.ts')
  const unexpectedEnds: string[] = []
  let isEnding = false
  const start = async () => {
    const started = await startNodeProcess({
      script,
      env: {
        PATH: process.env.PATH,
        ...settings,
        ...(isEdge ? { INGEST_PORT: String(port), INGEST_GRPC_PORT: String(grpcPort) } : {}),
        ...(isEdge ? { INGEST_ADMIN_PORT: String(adminPort) } : {}),
        ...(isEdge ? {} : { WORKERS_ADMIN_PORT: String(adminPort) }),
      },
      adminUrl: `http://127.0.0.1:${adminPort}`,
      log: line => process.env.STACK_LOG && console.log(`${script} ${line}`),
      signal: new AbortController().signal,
    })
    isEnding = false
    void started.exited.then(exit => {
      if (!isEnding) unexpectedEnds.push(exit.signal ?? `exit code ${exit.code}`)
    })
    return started
  }
  let child: ChildProcess = await start()
  return {
    get pid() {
      return child.pid
    },
    port: isEdge ? port : undefined,
    unexpectedEnds,
    async kill9() {
      isEnding = true
      await child.kill9()
    },
    async stop() {
      isEnding = true
      await child.stop(STOP_DEADLINE_MS)
    },
    async restart() {
      if (child.hasExited) child = await start()
    },
  }
}
