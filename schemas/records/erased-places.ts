import type { RetainedKind } from './directory.ts'

/** A kind of data that an erasure leaves. */
export const STAYING_KINDS = [
  'findings',
  'other_services',
  'metrics',
  'otlp_dead_letters',
  'deletion_statements',
  'redis_logs',
  'backups',
] as const
/** A kind of data that an erasure leaves. */
type StayingKind = (typeof STAYING_KINDS)[number]

/** Data of one kind that an erasure leaves, and how it ends. */
interface Staying {
  /** The kinds of data whose retention ends it, the longest of which counts. None: nothing here ends it. */
  readonly endsWith: readonly Exclude<RetainedKind, 'releases'>[]
  readonly description: string
}

/** Data that an erasure leaves (docs/api/retention.md#remains). */
export const STAYING: Readonly<Record<StayingKind, Staying>> = {
  findings: {
    endsWith: ['findings'],
    description:
      'Type, message and frames of findings, with whatever the application wrote into them. They expire with the day of the occurrence that had them.',
  },
  other_services: {
    endsWith: ['traces', 'logs', 'findings'],
    description:
      'Spans, log records and exceptions of other services in the same traces, which name no session. They expire with their day.',
  },
  metrics: {
    endsWith: ['metrics'],
    description: 'Attributes of metrics, which name no session. They expire with their day.',
  },
  otlp_dead_letters: {
    endsWith: ['dead-letters'],
    description:
      'Dead letters of OTLP exports, which have records of many sessions. They expire with their day; a purge removes them at once.',
  },
  deletion_statements: {
    endsWith: [],
    description:
      'Ids of the sessions in the latest hundred deletions that ClickHouse keeps of each table, and in its log of queries if the operator has one.',
  },
  redis_logs: {
    endsWith: [],
    description:
      'Requests in the append-only files of Redis, after they were stored, until Redis writes these files again.',
  },
  backups: {
    endsWith: [],
    description: 'Backups and exports that were made before, until the operator removes them.',
  },
}

/**
 * Content of a place, as far as it is of a person whose telemetry is stored: `erased` (an erasure removes it), a kind that stays,
 * or `none` (nothing that a client has sent about a person: counts, ids of traces, what members and builds have made).
 */
type Content = 'erased' | 'none' | StayingKind

/** Every table of ClickHouse. */
export const TABLE_CONTENTS: Readonly<Record<string, Content>> = {
  spans: 'erased',
  trace_buckets: 'none',
  span_stats: 'none',
  service_edges: 'none',
  logs: 'erased',
  metric_points: 'metrics',
  exceptions: 'erased',
  failures: 'erased',
  exception_twins: 'erased',
  findings: 'findings',
  finding_variants: 'none',
  finding_buckets: 'none',
  finding_frames: 'findings',
  release_frames: 'findings',
  session_identities: 'erased',
  session_heartbeats: 'erased',
  session_traces: 'erased',
  replay_chunks: 'erased',
  dead_letters: 'erased',
  source_maps: 'none',
  build_reports: 'none',
  ingest_log: 'none',
  finding_arrivals: 'none',
  page_requests: 'none',
  deleted_rows: 'none',
  request_counts: 'none',
  installation: 'none',
}

/** The beginning of the keys of objects. */
export const OBJECT_CONTENTS: Readonly<Record<string, Content>> = {
  'replays/': 'erased',
  // Those of sessions. Those of OTLP exports stay (`otlp_dead_letters`).
  'dead-letters/': 'erased',
  'source-maps/': 'none',
  'uploads/': 'none',
  'releases/': 'none',
}

/**
 * Every family of keys in Redis. `*` is a part that varies; a family that ends with a colon has all keys that begin so.
 */
export const KEY_CONTENTS: Readonly<Record<Extract<Content, 'erased' | 'none'>, readonly string[]>> = {
  erased: [
    // Requests and their exceptions, until they are settled.
    ...['payload:', 'joined:*', 'arriving:*', 'bull', 'bull:', 'alone:*'].map(name => `penstock:{*}:${name}`),
    // Subjects and sessions, until everything is deleted.
    ...['erasure:*', 'erasure:*:sessions'].map(ofWorkspace),
    // Comments that mention the person.
    ...['finding:*:activity', 'creation:*'].map(ofWorkspace),
    // Alerts that name the person.
    ...['upkeep-occasions', 'upkeep:held:', 'upkeep:deliveries:', 'upkeep:attempts:'].map(ofDirectory),
  ],
  none: [
    ...['pending', 'open', 'batch-of', 'batches', 'flow', 'shares', 'busy'].map(name => `penstock:{*}:${name}`),
    ...['arrivals', 'prices', 'mark', 'quota:*', 'pace:*', 'claims:*:*'].map(name => `penstock:{*}:${name}`),
    ...[
      'penstock:{installation}:',
      'penstock:{sweeper}:',
      'penstock:{key-usage}:',
      'penstock:{page-requests:*}:',
      'penstock:{symbolication.0}:map:',
    ],
    ...['penstock:{source-maps.0}:', 'penstock:{completions.0}:'],
    ...['user:*', 'users', 'credential:*', 'workspace-credential:*', 'credential-changes'].map(ofDirectory),
    ...['receipt-secret', 'installation', 'alerting', 'due-erasures', 'waiting-erasures'].map(ofDirectory),
    ...['upkeep:', 'upkeep-done', 'upkeep-queues-seen'].map(ofDirectory),
    ...[
      'upkeep-edges-before',
      'upkeep-judged',
      'upkeep-merge-versions',
      'upkeep-holding',
      'upkeep-occasions-page',
      'upkeep-watched',
      'upkeep-removed-releases',
      'upkeep-ungrouped',
    ].map(ofDirectory),
    ...['workspace:*', 'workspaces', 'workspace-slug:*'].map(ofDirectory),
    ...['member:*', 'members', 'managers', 'changes', 'creations', 'erasures', 'active-erasures'].map(ofWorkspace),
    ...['surface:*', 'surface:*:keys', 'surfaces', 'surface-ids', 'surface-key-ends'].map(ofWorkspace),
    ...['deleted-surfaces', 'keys', 'key-digests', 'key-ends'].map(ofWorkspace),
    ...['release:*', 'release:*:manifest', 'releases', 'unfinished-releases'].map(ofWorkspace),
    ...['stored-maps', 'unused-maps', 'finding-work', 'finding-changes', 'finding-merges'].map(ofWorkspace),
    ...['resolved-findings', 'ignored-findings', 'counted-findings', 'finding-activity-bytes'].map(ofWorkspace),
    ...['finding-rules', 'earlier-finding-rules', 'scrubbing', 'earlier-scrubbing'].map(ofWorkspace),
    ...['dropping', 'earlier-dropping', 'alerts', 'earlier-alerts'].map(ofWorkspace),
  ],
}

function ofDirectory(name: string): string {
  return `penstock:{directory}:${name}`
}

function ofWorkspace(name: string): string {
  return ofDirectory(`workspace:*:${name}`)
}
