import { z } from 'zod'
import { READER } from '../credentials.ts'
import { EXAMPLE, EXAMPLE_EXCEPTION, EXAMPLE_TIMES } from '../example-values.ts'
import { instantQuerySchema, isOrdered, orderedRange } from '../filters.ts'
import type { PermittedOperation } from '../operation.ts'
import { nextCursorSchema, pageQuerySchema } from '../page.ts'
import { findingsProblems } from '../problem-sets.ts'
import { findingIdSchema, occurrenceFields } from './schemas.ts'

const range = {
  from: instantQuerySchema.optional().meta({ description: 'Only occurrences received at or after this time.' }),
  to: instantQuerySchema.optional().meta({ description: 'Only occurrences received before this time.' }),
}

/** Query of GET /v3/findings/{findingId}/values. */
export const findingRangeQuerySchema = z.object(range).refine(isOrdered, orderedRange)
/** Query of GET /v3/findings/{findingId}/values. */
export type FindingRangeQuery = z.infer<typeof findingRangeQuerySchema>

/** Query of GET /v3/findings/{findingId}/occurrences. */
export const listOccurrencesQuerySchema = pageQuerySchema.extend(range).refine(isOrdered, orderedRange)
/** Query of GET /v3/findings/{findingId}/occurrences. */
export type ListOccurrencesQuery = z.infer<typeof listOccurrencesQuerySchema>

/** Texts that state where an exception occurred. */
const placeFields = {
  browser: z.string().optional().meta({ description: 'Browser or client, such as `Chrome 131`.' }),
  system: z.string().optional().meta({ description: 'Operating system, such as `iOS 17`.' }),
  route: z.string().optional().meta({ description: 'Route, else path with ids replaced.' }),
  environment: z.string().optional(),
  host: z.string().optional(),
}

/** An occurrence in the list of a finding. Absent fields are left out, never null. */
const listedOccurrenceSchema = z
  .strictObject({
    ...occurrenceFields,
    surfaceId: z.string(),
    releaseSlug: z.string().optional().meta({ description: 'The release of the version, if it is registered.' }),
    ...placeFields,
    person: z.string().optional().meta({
      description: 'The `identifier` of the session, of the identity received last. Only with `org:sessions:read`.',
    }),
    recordedAt: z.iso
      .datetime()
      .optional()
      .meta({ description: 'Its moment in the recording of the session, if there is one of that time.' }),
  })
  .meta({ id: 'ListedOccurrence' })
/** An occurrence in the list of a finding. */
export type ListedOccurrence = z.infer<typeof listedOccurrenceSchema>

/** Response of GET /v3/findings/{findingId}/occurrences. */
export const occurrencesPageSchema = z
  .strictObject({ occurrences: z.array(listedOccurrenceSchema), nextCursor: nextCursorSchema })
  .meta({ id: 'OccurrencesPage' })
/** Response of GET /v3/findings/{findingId}/occurrences. */
export type OccurrencesPage = z.infer<typeof occurrencesPageSchema>

/** If a finding has more occurrences, those since the five minutes in which the newest ones of this number begin are examined. */
export const EXAMINED_NEWEST = 100_000
/** Most occurrences that are examined, because five minutes can have any number of them. */
export const EXAMINED_MAX = 200_000
/** Values of each kind that are shown. */
export const VALUES_MAX = 10

const count = z.number().int().min(0)

const valueCountsSchema = z
  .strictObject({
    values: z
      .array(
        z.strictObject({
          value: z.string(),
          count: count.meta({ description: 'Occurrences with this value.' }),
          share: z.number().min(0).max(1).meta({ description: 'Share of all examined occurrences.' }),
        }),
      )
      .max(VALUES_MAX)
      .meta({ description: 'Most frequent first.' }),
    distinctCount: count.meta({ description: 'Number of different values.' }),
    otherCount: count.meta({ description: 'Occurrences with a value that is not listed.' }),
    absentCount: count.meta({ description: 'Occurrences without a value.' }),
  })
  .meta({ id: 'ValueCounts' })
/** How often the values of a kind occurred. */
export type ValueCounts = z.infer<typeof valueCountsSchema>

/** Response of GET /v3/findings/{findingId}/values. */
export const findingValuesSchema = z
  .strictObject({
    occurrenceCount: count.meta({ description: 'Occurrences in the time.' }),
    examinedCount: count.meta({
      description: `Occurrences that all else is of: all in the time, or about the newest ${EXAMINED_NEWEST.toLocaleString('en')}.`,
    }),
    people: z.strictObject({
      identifiedCount: count.meta({ description: 'People with an `identifier`.' }),
      top: z
        .array(z.strictObject({ identifier: z.string(), sessionCount: count, occurrenceCount: count }))
        .max(VALUES_MAX)
        .optional()
        .meta({ description: 'Most occurrences first. Only with `org:sessions:read`.' }),
    }),
    sessionCount: count,
    anonymousSessionCount: count.meta({ description: 'Sessions without an identity.' }),
    versions: valueCountsSchema,
    browsers: valueCountsSchema,
    systems: valueCountsSchema,
    routes: valueCountsSchema,
    environments: valueCountsSchema,
    hosts: valueCountsSchema,
  })
  .meta({ id: 'FindingValues' })
/** Response of GET /v3/findings/{findingId}/values. */
export type FindingValues = z.infer<typeof findingValuesSchema>

const { sessionId, surfaceId, spanId, traceId, version } = EXAMPLE
const none = { values: [], distinctCount: 0, otherCount: 0, absentCount: 1 }

const ANSWERS = {
  occurrences: {
    occurrences: [
      {
        occurredAt: EXAMPLE_TIMES.thrownAt,
        receivedAt: EXAMPLE_TIMES.receivedAt,
        ...{ traceId, spanId, sessionId, serviceVersion: version },
        message: EXAMPLE_EXCEPTION.message,
        surfaceId,
        releaseSlug: EXAMPLE.releaseSlug,
        route: '/cart',
        person: 'user-7',
        recordedAt: '2026-09-21T14:13:20.020Z',
      },
    ],
    nextCursor: null,
  },
  values: {
    occurrenceCount: 1,
    examinedCount: 1,
    people: { identifiedCount: 1, top: [{ identifier: 'user-7', sessionCount: 1, occurrenceCount: 1 }] },
    sessionCount: 1,
    anonymousSessionCount: 0,
    versions: { ...none, values: [{ value: version, count: 1, share: 1 }], distinctCount: 1, absentCount: 0 },
    browsers: none,
    systems: none,
    routes: { ...none, values: [{ value: '/cart', count: 1, share: 1 }], distinctCount: 1, absentCount: 0 },
    environments: none,
    hosts: none,
  },
} as const

const findingId = findingIdSchema.meta({ description: 'The finding.', example: EXAMPLE.findingId })
const exampleRange = {
  from: range.from.meta({ example: EXAMPLE.from }),
  to: range.to.meta({ example: EXAMPLE.to }),
}

/** Lists the occurrences of a finding (docs/api/findings.md#occurrences). */
export const listFindingOccurrences: PermittedOperation = {
  operationId: 'listFindingOccurrences',
  method: 'GET',
  path: '/v3/findings/:findingId/occurrences',
  service: 'api-findings',
  tag: 'findings',
  summary: 'List the occurrences of a finding, last received first',
  credentials: READER,
  permission: 'org:findings:read',
  parameters: { path: z.object({ findingId }), query: z.object({ ...pageQuerySchema.shape, ...exampleRange }) },
  success: {
    status: 200,
    description: 'A page of occurrences.',
    contents: { 'application/json': { schema: occurrencesPageSchema, example: ANSWERS.occurrences } },
  },
  problems: findingsProblems,
}

/** Reads whom a finding has hit, and where (docs/api/findings.md#occurrences). */
export const readFindingValues: PermittedOperation = {
  operationId: 'readFindingValues',
  method: 'GET',
  path: '/v3/findings/:findingId/values',
  service: 'api-findings',
  tag: 'findings',
  summary: 'Read whom a finding has hit and where: people, versions, browsers, routes',
  credentials: READER,
  permission: 'org:findings:read',
  parameters: { path: z.object({ findingId }), query: z.object(exampleRange) },
  success: {
    status: 200,
    description: 'People, and the most frequent values.',
    contents: { 'application/json': { schema: findingValuesSchema, example: ANSWERS.values } },
  },
  problems: findingsProblems,
}
