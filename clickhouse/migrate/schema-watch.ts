import { MINUTE_MS } from '../../schemas/units.ts'
import { errorFields } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { type ClickHouseClient, type ShardServer, serversOf } from '../client.ts'
import { adviceFor, type SchemaDifference, serverDifferences } from './compare-schema.ts'
import { MIGRATIONS, type Migration, readMigrations } from './migration-files.ts'

/** Collaborators of a watch. */
interface SchemaWatchDeps {
  readonly clickhouse: ClickHouseClient
  readonly database: string
  readonly logger: Logger
  /** Receives the tables whose views are missing, so that the clients with this map insert nothing into them. */
  readonly held?: Map<string, string>
}

/** When a watch checks the schema. */
interface SchemaWatchOptions {
  /** Time between two checks; a minute if left out. */
  readonly everyMs?: number
  /** Time until a schema is checked again that differs, or that could not be read. */
  readonly againMs?: number
}

const AGAIN_MS = 5_000

/** A process can say nothing of the schema before its first check. */
const NOT_CHECKED = 'the schema of clickhouse is not checked yet'

/**
 * Compares the schema of ClickHouse with the one that the migrations make, at the start and each minute (docs/decisions/055). A
 * server that does not answer counts as it was: a process that only waits for a store is ready.
 */
export class SchemaWatch {
  readonly #deps: SchemaWatchDeps
  readonly #options: Required<SchemaWatchOptions>
  readonly #servers: readonly ShardServer[]
  readonly #ofServers = new Map<ShardServer, readonly SchemaDifference[]>()
  #isChecked = false
  #migrations: Promise<Migration[]> | undefined
  #checking: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  #isStopped = false
  #logged: string | undefined

  constructor(deps: SchemaWatchDeps, { everyMs = MINUTE_MS, againMs = AGAIN_MS }: SchemaWatchOptions = {}) {
    this.#deps = deps
    this.#servers = serversOf(deps.clickhouse)
    this.#options = { everyMs, againMs }
    void this.check()
  }

  /** How the schema differs and the command to run, or undefined. */
  get fault(): string | undefined {
    return this.#isChecked ? this.#differs() : NOT_CHECKED
  }

  /** Checks now. Calls during a check share it. */
  check(): Promise<void> {
    clearTimeout(this.#timer)
    this.#checking ??= this.#checkAll().finally(() => {
      this.#checking = undefined
    })
    return this.#checking
  }

  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }

  async #checkAll(): Promise<void> {
    const results = await Promise.all(this.#servers.map(server => this.#checkServer(server)))
    this.#isChecked = true
    this.#hold()
    this.#report()
    if (this.#isStopped) return
    const isSettled = results.every(isRead => isRead) && this.#differs() === undefined
    const nextMs = isSettled ? this.#options.everyMs : this.#options.againMs
    this.#timer = setTimeout(() => void this.check(), nextMs).unref()
  }

  /** Returns whether the server has answered. */
  async #checkServer(server: ShardServer): Promise<boolean> {
    const { logger, database, clickhouse } = this.#deps
    this.#migrations ??= readMigrations(MIGRATIONS)
    const migrations = await this.#migrations
    try {
      this.#ofServers.set(
        server,
        await serverDifferences(server, { database, isCluster: clickhouse.shards !== undefined }, migrations),
      )
      return true
    } catch (error) {
      logger.debug({ server: server.name, ...errorFields(error) }, 'the schema could not be checked')
      return false
    }
  }

  #differs(): string | undefined {
    const texts = [...this.#ofServers].flatMap(([{ name }, differences]) =>
      differences.map(difference => (name === undefined ? '' : `${name}: `) + adviceFor(difference)),
    )
    const more = texts.length > 1 ? ` (and ${texts.length - 1} more)` : ''
    return texts[0] === undefined ? undefined : `clickhouse: ${texts[0]}${more}`
  }

  /** Rows that are inserted without a view would be missing in it for ever. An insert that waits loses nothing. */
  #hold(): void {
    const { held } = this.#deps
    held?.clear()
    for (const difference of [...this.#ofServers.values()].flat()) {
      if (difference.kind === 'view' && difference.source !== undefined)
        held?.set(difference.source, adviceFor(difference))
    }
  }

  #report(): void {
    const reason = this.#differs()
    if (reason === this.#logged) return
    this.#logged = reason
    if (reason === undefined) this.#deps.logger.info('the schema of clickhouse is complete')
    else this.#deps.logger.error({ reason }, 'the schema of clickhouse is not the one that the migrations make')
  }
}
