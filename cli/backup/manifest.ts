import { z } from 'zod'
import { MIB } from '../../schemas/units.ts'
import { parseJson } from '../../shared/json/parse-json.ts'
import type { ObjectStore } from '../../shared/object-store/types.ts'

const count = z.number().int().nonnegative()

/** One of the objects with a list of objects. */
const listSchema = z.object({ key: z.string(), sha256: z.string(), entries: count })
/** A list of objects, in the order of their keys. */
const listedSchema = z.object({ lists: z.array(listSchema), count, bytes: count })
/** Reference to a list of objects. */
export type Listed = z.infer<typeof listedSchema>

const tableSchema = z.object({ table: z.string(), parts: count, rows: count, checksum: z.string() })

const manifestSchema = z.object({
  version: z.literal(1),
  name: z.string(),
  /** When the backup began: a deletion that the directory has recorded by then is done in the rows too. */
  beganAt: z.iso.datetime(),
  /** All rows that were stored by then are in the backup. */
  storedUntil: z.iso.datetime(),
  endedAt: z.iso.datetime(),
  penstock: z.object({ version: z.string(), commit: z.string() }),
  directory: z.object({ name: z.string(), workspaces: count, records: count, isEncrypted: z.boolean() }),
  clickhouse: z.object({
    database: z.string(),
    /** Disk of the servers that has the files. */
    disk: z.string(),
    /** First and last day of arrival, `YYYYMMDD`. Absent without rows. */
    days: z.object({ first: z.string(), last: z.string() }).optional(),
    /** By shard, with the path on its disk; one without a cluster. */
    shards: z.array(z.object({ path: z.string(), tables: z.array(tableSchema) })),
  }),
  objects: listedSchema,
})
/** States what a backup of an installation has. It is written last, so a backup without it was interrupted. */
export type Manifest = Readonly<z.infer<typeof manifestSchema>>

const MANIFESTS = 'backups/manifests/'
/** A shard has some twenty tables, and a list is a line. */
const MANIFEST_MAX_BYTES = 16 * MIB

/** Returns the beginning of the keys of everything of a backup but its manifest. */
export function dataPrefix(name: string): string {
  return `backups/data/${name}/`
}

/** Returns the beginning of the key of the directory in a backup. */
export function directoryRoot(name: string): string {
  return `${dataPrefix(name)}directory/`
}

/** Returns the name of a backup that begins at this time, in Unix ms. Names sort by time. */
export function backupName(beganAtMs: number): string {
  return new Date(beganAtMs).toISOString().replace(/[-:.]/g, '')
}

/** Stores a manifest, which completes the backup. */
export async function writeManifest(target: Pick<ObjectStore, 'put'>, manifest: Manifest): Promise<void> {
  const body = Buffer.from(`${JSON.stringify(manifest, undefined, 2)}\n`)
  await target.put(`${MANIFESTS}${manifest.name}.json`, body, { contentType: 'application/json' })
}

/** Returns the names of the complete backups, the newest first. */
export async function backupNames(target: Pick<ObjectStore, 'list'>): Promise<string[]> {
  const names: string[] = []
  for await (const page of target.list(MANIFESTS)) {
    for (const { key } of page) if (key.endsWith('.json')) names.push(key.slice(MANIFESTS.length, -'.json'.length))
  }
  return names.reverse()
}

/** Returns the manifest of a backup, or undefined if there is none. Throws if it is not one that this version can read. */
export async function readManifest(target: Pick<ObjectStore, 'get'>, name: string): Promise<Manifest | undefined> {
  const object = await target.get(`${MANIFESTS}${name}.json`, MANIFEST_MAX_BYTES)
  if (object === undefined) return undefined
  const manifest = manifestSchema.safeParse(parseJson(object.body.toString()))
  if (manifest.success) return manifest.data
  throw new Error(`the manifest of ${name} was changed, or a newer version made it`)
}

/** Returns the manifest of the backup with this name, or of the newest one for `latest`; undefined if there is none. */
export async function findManifest(
  target: Pick<ObjectStore, 'get' | 'list'>,
  wanted: string,
): Promise<Manifest | undefined> {
  const name = wanted === 'latest' ? (await backupNames(target))[0] : wanted
  return name === undefined ? undefined : readManifest(target, name)
}

/** Returns the number of all rows of a backup. */
export function rowsOf({ clickhouse }: Pick<Manifest, 'clickhouse'>): number {
  return clickhouse.shards.flatMap(({ tables }) => tables).reduce((sum, { rows }) => sum + rows, 0)
}
