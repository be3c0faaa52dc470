import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { pino } from 'pino'
import { answerVersion } from '../../shared/runtime/build-info.ts'
import { ConfigError } from '../../shared/runtime/config.ts'
import { describeError } from '../../shared/runtime/errors.ts'
import { readSecretFiles } from '../../shared/runtime/secret-files.ts'
import { commandFor, parseLocalConfig } from './config.ts'
import { claimDirectory } from './lock.ts'
import { createConsoleLog } from './processes/console-log.ts'
import { addressesOf } from './processes/processes.ts'
import { StartLog } from './processes/start-log.ts'
import { createSupervisor } from './processes/supervisor.ts'
import { StartError, type Started, startEverything } from './start.ts'

/**
 * Runs `npm start` on Node 22, and `npm run dev` with `--watch`: starts all servers and processes as children of this
 * process, until Ctrl-C.
 * The first signal stops them in order, within STOP_DEADLINE_MS in total. A second signal kills them.
 */
const STOP_DEADLINE_MS = 4_700
/** The terminal, npm and bootstrap.mjs each forward the same Ctrl-C, so signals this close together count as one. */
const SAME_SIGNAL_MS = 500

answerVersion()
const startedAt = Date.now()
const isWatched = process.argv.includes('--watch')
const { env, faults } = readSecretFiles(process.env)
if (faults.length > 0) giveUp(`the environment is invalid: ${faults.join('; ')}`)
const isTerminal = process.stdout.isTTY === true && env.TERM !== 'dumb'
const write = (text: string) => void process.stdout.write(text)
const isVerbose = env.LOG_LEVEL === 'debug' || env.LOG_LEVEL === 'trace'
const log = new StartLog({
  log: createConsoleLog({ write, isColored: isTerminal && !env.NO_COLOR }),
  write,
  columns: isTerminal && !isVerbose ? () => process.stdout.columns || 80 : undefined,
  isVerbose,
})
const say = (text: string) => log.note('penstock', text)
const config = readConfig()

const claim = claimLocalDirectory()
if ('heldBy' in claim) {
  giveUp(
    `already running with its data in ${config.LOCAL_DIR} (pid ${claim.heldBy})
  to open its console: ${commandFor('console:link')}
  to stop it: Ctrl-C in its terminal
  to run another one beside it: set LOCAL_DIR and other ports (deploy/local/README.md)`,
  )
}

const supervisor = createSupervisor({
  log: (unit, text) => log.note(unit, text),
  logReady: (unit, text) => log.progress(unit, text),
})
let stoppingSince: number | undefined
handleSignals()

try {
  const logger = pino({ level: config.LOG_LEVEL }, { write: (line: string) => log.line('penstock', line) })
  const started = await startEverything({ config, env, supervisor, log, logger, isWatched })
  if (stoppingSince === undefined) announce(started)
} catch (error) {
  if (stoppingSince === undefined) {
    log.stop()
    if (error instanceof StartError) {
      claim.release()
      giveUp(error.message)
    }
    say(`could not start: ${describeError(error)}`)
    await stopAndExit(1)
  }
}

function announce({ credentials, consoleUrl }: Started): void {
  log.ready()
  const rows = {
    ...(consoleUrl && { console: consoleUrl }),
    endpoint: `${credentials.baseUrl} (OTLP/gRPC: ${addressesOf(config).grpcUrl})`,
    key: `${credentials.publicKey} (header x-service-public-key)`,
    demo: `${commandFor('demo')}, in a second terminal: stores the telemetry of a small shop`,
  }
  const text = [
    '',
    `Penstock is ready (${((Date.now() - startedAt) / 1_000).toFixed(1)} s). Ctrl-C stops it.`,
    '',
    ...Object.entries(rows).map(([name, value]) => `  ${name.padEnd(9)} ${value}`),
    '',
    ...(consoleUrl?.includes('?code=')
      ? [`The link signs one browser in, once. Another link: ${commandFor('console:link')}`]
      : []),
    `All addresses and keys: ${join(config.LOCAL_DIR, 'credentials.json')}`,
    '',
    '',
  ]
  write(text.join('\n'))
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
  log.stop()
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

/** Claims the directory of the data. Ends the start if it cannot be written, as in a checkout that is read-only. */
function claimLocalDirectory(): ReturnType<typeof claimDirectory> {
  try {
    mkdirSync(config.LOCAL_DIR, { recursive: true, mode: 0o700 })
    return claimDirectory(config.LOCAL_DIR)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === undefined) throw error
    return giveUp(`cannot write to ${config.LOCAL_DIR} (${code}): set LOCAL_DIR to a directory that you can write to`)
  }
}

/** Ends a start that has run nothing yet. */
function giveUp(text: string): never {
  process.stderr.write(`penstock: ${text}\n`)
  process.exit(1)
}
