import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { pino } from 'pino'
import { ConfigError } from '../../shared/runtime/config.ts'
import { describeError } from '../../shared/runtime/errors.ts'
import { readSecretFiles } from '../../shared/runtime/secret-files.ts'
import { parseLocalConfig } from './config.ts'
import { claimDirectory } from './lock.ts'
import { createConsoleLog } from './processes/console-log.ts'
import { addressesOf } from './processes/processes.ts'
import { createSupervisor } from './processes/supervisor.ts'
import { StartError, type Started, startEverything } from './start.ts'
import { exampleCommands, exampleExport } from './workspace/example.ts'

/**
 * Runs `npm start` on Node 22, and `npm run dev` with `--watch`: starts all servers and processes as children of this
 * process, until Ctrl-C.
 * The first signal stops them in order, within STOP_DEADLINE_MS in total. A second signal kills them.
 */
const STOP_DEADLINE_MS = 4_700
/** The terminal, npm and bootstrap.mjs each forward the same Ctrl-C, so signals this close together count as one. */
const SAME_SIGNAL_MS = 500

const startedAt = Date.now()
const isWatched = process.argv.includes('--watch')
const { env, faults } = readSecretFiles(process.env)
if (faults.length > 0) giveUp(`the environment is invalid: ${faults.join('; ')}`)
const isColored = process.stdout.isTTY === true && !env.NO_COLOR
const log = createConsoleLog({ write: text => process.stdout.write(text), isColored })
const say = (text: string) => log.note('penstock', text)
const config = readConfig()

mkdirSync(config.LOCAL_DIR, { recursive: true, mode: 0o700 })
const claim = claimDirectory(config.LOCAL_DIR)
if ('heldBy' in claim) {
  giveUp(
    `already running with its data in ${config.LOCAL_DIR} (pid ${claim.heldBy}): stop that process, or set LOCAL_DIR and other ports`,
  )
}

const supervisor = createSupervisor({ log: log.note })
let stoppingSince: number | undefined
handleSignals()

try {
  say('starting')
  const logger = pino({ level: config.LOG_LEVEL }, { write: (line: string) => log.line('penstock', line) })
  const started = await startEverything({ config, env, supervisor, log, logger, isWatched })
  if (stoppingSince === undefined) announce(started)
} catch (error) {
  if (stoppingSince === undefined) {
    say(error instanceof StartError ? error.message : `could not start: ${describeError(error)}`)
    await stopAndExit(1)
  }
}

function announce({ credentials, workspaceId, consoleUrl }: Started): void {
  const example = exampleExport({ workspaceId, surfaceId: credentials.surfaceId }, Date.now())
  const { send, list, trace } = exampleCommands(example, credentials)
  const rows = {
    ...(consoleUrl && { console: consoleUrl }),
    'base URL': `${credentials.baseUrl} (all operations)`,
    'OTLP/gRPC': addressesOf(config).grpcUrl,
    API: credentials.apiUrl,
    admin: Object.values(credentials.adminUrls).join(' '),
    'public key': credentials.publicKey,
    'secret key': credentials.secretKey,
    workspace: credentials.workspaceSlug,
    credentials: join(config.LOCAL_DIR, 'credentials.json'),
    exporter: `OTEL_EXPORTER_OTLP_ENDPOINT=${credentials.baseUrl} OTEL_EXPORTER_OTLP_HEADERS=x-service-public-key=${credentials.publicKey}`,
  }
  const table = Object.entries(rows).map(([name, value]) => `  ${name.padEnd(12)} ${value}`)
  const text = [
    '',
    `Penstock is ready (${((Date.now() - startedAt) / 1_000).toFixed(1)} s). Ctrl-C stops it.`,
    '',
    ...table,
    '',
    ...(consoleUrl?.includes('?code=')
      ? ['The link of the console signs one browser in, once. Another one: npm run console:link', '']
      : []),
    'Store a failed span:',
    '',
    send,
    '',
    'List its finding, then read its trace:',
    '',
    list,
    '',
    trace,
    '',
    '',
  ]
  process.stdout.write(text.join('\n'))
}

function handleSignals(): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (stoppingSince === undefined) void stopAndExit(0)
      else if (Date.now() - stoppingSince > SAME_SIGNAL_MS) void killAndExit(130)
    })
  }
  // bootstrap.mjs has ended, or stdout was closed.
  process.once('disconnect', () => void stopAndExit(0))
  process.channel?.unref()
  process.stdout.on('error', () => void stopAndExit(0))
  process.on('uncaughtException', error => {
    say(`unexpected error: ${describeError(error)}`)
    void stopAndExit(1)
  })
}

async function stopAndExit(code: number): Promise<void> {
  if (stoppingSince !== undefined) return
  stoppingSince = Date.now()
  say('stopping')
  setTimeout(() => void killAndExit(code), STOP_DEADLINE_MS)
  await supervisor.stop()
  say(`stopped in ${((Date.now() - stoppingSince) / 1_000).toFixed(1)} s`)
  leave(code)
}

async function killAndExit(code: number): Promise<void> {
  say('killing the processes that are still running')
  await supervisor.killAll()
  leave(code)
}

function leave(code: number): never {
  if ('release' in claim) claim.release()
  process.exit(code)
}

function readConfig() {
  try {
    return parseLocalConfig(env)
  } catch (error) {
    if (error instanceof ConfigError) giveUp(error.message)
    throw error
  }
}

function giveUp(text: string): never {
  process.stderr.write(`penstock: ${text}\n`)
  process.exit(1)
}
