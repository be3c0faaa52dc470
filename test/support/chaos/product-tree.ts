import { execFile } from 'node:child_process'
import { mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Redis } from 'ioredis'
import { pino } from 'pino'
import { ROOT } from '../../../deploy/local/config.ts'
import type { LocalSecrets } from '../../../deploy/local/workspace/secrets.ts'

const run = promisify(execFile)

/** The source of the product at another commit, with the dependencies of this one. */
interface ProductTree {
  readonly path: string
  remove(): Promise<void>
}

/** Extracts the tree of a commit. Returns the reason if this checkout does not contain it. */
export async function extractTree(commit: string): Promise<ProductTree | string> {
  const path = await mkdtemp(join(tmpdir(), 'penstock-tree-'))
  try {
    await run('sh', ['-c', 'git archive "$0" | tar -x -C "$1"', commit, path], { cwd: ROOT })
    await symlink(join(ROOT, 'node_modules'), join(path, 'node_modules'))
    // The status of a pipe is that of tar, which accepts an empty archive.
    await import(join(path, 'shared/directory/directory.ts'))
    return { path, remove: () => rm(path, { recursive: true }) }
  } catch (error) {
    await rm(path, { recursive: true })
    return `the commit ${commit} is not in this checkout (${(error as Error).message.split('\n', 1)})`
  }
}

/** Creates the tables of a product, or changes them to its version. */
export async function migrateWith(tree: string, clickhouseUrl: string): Promise<void> {
  type Migrate = typeof import('../../../clickhouse/migrate/migrate.ts')
  type Client = typeof import('../../../clickhouse/client.ts')
  const { migrate } = (await import(join(tree, 'clickhouse/migrate/migrate.ts'))) as Migrate
  const { createClickHouse } = (await import(join(tree, 'clickhouse/client.ts'))) as Client
  const client = createClickHouse({ url: clickhouseUrl })
  try {
    await migrate(client, { database: 'penstock', retentionDays: 30, logger: pino({ level: 'silent' }) })
  } finally {
    await client.close()
  }
}

/** Creates the first workspace as a product does. */
export async function provisionWith(tree: string, redis: Redis, secrets: LocalSecrets): Promise<void> {
  type Provision = typeof import('../../../deploy/local/workspace/provision.ts')
  type Directory = typeof import('../../../shared/directory/directory.ts')
  const { provision } = (await import(join(tree, 'deploy/local/workspace/provision.ts'))) as Provision
  const { createDirectory } = (await import(join(tree, 'shared/directory/directory.ts'))) as Directory
  await provision(createDirectory(redis), secrets)
}
