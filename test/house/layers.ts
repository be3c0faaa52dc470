/**
 * Layers of folders and files, from the ground up. A file may import files of layers below its own, and files that share
 * its entry. Entries of one layer are siblings and never import each other. A file belongs to the longest entry that its
 * path begins with.
 */
export type Layers = readonly (readonly string[])[]

/** Rooms of the repository. The four processes are siblings: what two of them need is in a room below. */
export const ROOMS: Layers = [
  ['schemas/'],
  ['shared/'],
  ['clickhouse/'],
  ['letters/'],
  ['ingest/', 'workers/', 'api/', 'cli/'],
  ['deploy/'],
  ['test/'],
  ['bench/'],
]

/** Layers inside a room. Features of a process are siblings; its doors (deps, table, connect, main) are above them. */
export const INSIDE: Readonly<Record<string, Layers>> = {
  schemas: [
    ['schemas/records/', 'schemas/otlp/'],
    ['schemas/queues/names.ts'],
    ['schemas/http/'],
    ['schemas/queues/', 'schemas/openapi/'],
  ],
  shared: [
    ['shared/runtime/', 'shared/ids/', 'shared/json/', 'shared/memory/'],
    ['shared/concurrency/'],
    ['shared/queue/', 'shared/object-store/', 'shared/directory/', 'shared/http/'],
    ['shared/backup/'],
  ],
  clickhouse: [
    ['clickhouse/read-connection.ts', 'clickhouse/native/'],
    ['clickhouse/client.ts'],
    ['clickhouse/cluster/'],
    ['clickhouse/select.ts', 'clickhouse/connect.ts', 'clickhouse/fence-insert.ts', 'clickhouse/tables/'],
    ['clickhouse/watch-server.ts'],
    ['clickhouse/count-deletion.ts'],
    ['clickhouse/queries/attributes/', 'clickhouse/queries/sessions/', 'clickhouse/queries/traces/'],
    [
      'clickhouse/queries/retention/',
      'clickhouse/queries/audit/',
      'clickhouse/queries/findings/',
      'clickhouse/queries/letters/',
      'clickhouse/queries/receipts/',
      'clickhouse/queries/releases/',
      'clickhouse/queries/replay/',
    ],
    ['clickhouse/migrate/'],
  ],
  ingest: [
    ['ingest/config.ts', 'ingest/auth/', 'ingest/admission/'],
    ['ingest/commit/'],
    ['ingest/releases/', 'ingest/connect-partitions.ts'],
    ['ingest/routes/', 'ingest/metrics.ts', 'ingest/deps.ts'],
    ['ingest/routes.ts', 'ingest/connect.ts'],
    ['ingest/main.ts'],
  ],
  workers: [
    ['workers/queue/', 'workers/decode/'],
    ['workers/config.ts', 'workers/batch/'],
    ['workers/otlp/protobuf/'],
    ['workers/exceptions/'],
    [
      'workers/dead-letters/',
      'workers/otlp/json/',
      'workers/otlp/logs/',
      'workers/otlp/metrics/',
      'workers/otlp/traces/',
      'workers/replay/',
      'workers/rows/',
      'workers/source-maps/',
      'workers/symbolication/',
      'workers/upkeep/',
    ],
    ['workers/metrics.ts', 'workers/liveness.ts', 'workers/store-access.ts'],
    ['workers/deps.ts', 'workers/back-up-regularly.ts'],
    ['workers/pools/', 'workers/connect.ts'],
    ['workers/main.ts'],
  ],
  api: [
    ['api/auth/'],
    ['api/config.ts', 'api/http/'],
    [
      'api/erasures/',
      'api/dead-letters/',
      'api/findings/',
      'api/receipts/',
      'api/releases/',
      'api/replay/',
      'api/retention/',
      'api/sessions/',
      'api/traces/',
      'api/watermarks/',
      'api/workspaces/',
    ],
    ['api/deps.ts'],
    ['api/routes.ts', 'api/connect.ts'],
    ['api/main.ts'],
  ],
  cli: [
    ['cli/config.ts', 'cli/exit-codes.ts', 'cli/local-environment.ts', 'cli/terminal.ts'],
    ['cli/command-context.ts'],
    ['cli/audit/', 'cli/directory/', 'cli/sessions/', 'cli/sourcemaps/', 'cli/find-workspace.ts'],
    ['cli/upload-progress.ts'],
    ['cli/commands/'],
    ['cli/program.ts', 'cli/connect.ts'],
    ['cli/main.ts'],
    ['cli/penstock.mjs'],
  ],
}

/** The bag of all dependencies of a process, its table and its wiring, each with the files and folders that may import it. */
export const DOORS: Readonly<Record<string, readonly string[]>> = {
  'ingest/deps.ts': ['ingest/connect.ts', 'ingest/routes.ts'],
  'ingest/routes.ts': ['ingest/main.ts', 'deploy/local/'],
  'ingest/connect.ts': ['ingest/main.ts', 'deploy/local/'],
  'workers/deps.ts': ['workers/connect.ts', 'workers/pools/'],
  'workers/pools/table.ts': ['workers/main.ts'],
  'workers/connect.ts': ['workers/main.ts'],
  'api/deps.ts': ['api/connect.ts', 'api/routes.ts'],
  'api/routes.ts': ['api/main.ts', 'deploy/local/'],
  'api/connect.ts': ['api/main.ts', 'deploy/local/'],
  'cli/program.ts': ['cli/main.ts'],
  'cli/connect.ts': ['cli/main.ts'],
}
