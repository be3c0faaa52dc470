import { z } from 'zod'
import { READER } from '../credentials.ts'
import { EXAMPLE, EXAMPLE_TIMES } from '../example-values.ts'
import { isOrdered, orderedRange, serviceFilter } from '../filters.ts'
import type { PermittedOperation } from '../operation.ts'
import { callerProblems } from '../problem-sets.ts'
import { EXAMPLE_RANGE, ofSpans } from '../services.ts'

/** Most versions that the response shows. */
export const VERSIONS_MAX = 200

/** Query of GET /v3/versions. */
export const listVersionsQuerySchema = z
  .object({
    ...ofSpans,
    from: ofSpans.from.meta({
      description: 'Only spans that ended in this minute or later. A day before `to` unless given.',
      example: EXAMPLE_RANGE.from,
    }),
    service: serviceFilter.meta({
      description: 'Only versions of this `service.name`.',
      example: EXAMPLE.serviceName,
    }),
  })
  .refine(isOrdered, orderedRange)

const count = z.number().int().min(0)
const free = (of: string) =>
  z
    .strictObject({
      total: count,
      errored: count.meta({ description: `${of} with an exception of this version.` }),
      crashed: count.meta({ description: `${of} with an exception that was not handled (\`exception.escaped\`).` }),
    })
    .meta({ description: `${of} in which spans or exceptions of this version occurred.` })

const versionSchema = z
  .strictObject({
    service: z.string(),
    version: z.string().meta({ description: 'The `service.version`. Empty for spans without one.' }),
    firstAt: z.iso.datetime().nullable().meta({ description: 'Minute of its first span in the range.' }),
    lastAt: z.iso.datetime().nullable(),
    spans: count,
    errors: count.meta({ description: 'Spans with the status `ERROR`.' }),
    sessions: free('Sessions').meta({ id: 'SessionsOfVersion' }),
    people: free('Identified people').meta({ id: 'PeopleOfVersion' }),
    findings: z
      .strictObject({
        new: count.meta({ description: 'Findings whose first retained occurrence was in this version, in the range.' }),
        regressed: count.meta({ description: 'Findings that are regressed because of this version.' }),
      })
      .meta({ id: 'FindingsOfVersion' }),
  })
  .meta({ id: 'VersionHealth' })
/** How a version of a service does. */
export type VersionHealth = z.infer<typeof versionSchema>

/** Response of GET /v3/versions. */
export const versionsSchema = z
  .strictObject({
    from: z.iso.datetime(),
    to: z.iso.datetime(),
    versions: z.array(versionSchema).meta({ description: `At most ${VERSIONS_MAX}, the latest first.` }),
    isCut: z.boolean().meta({ description: 'Whether there are more versions.' }),
  })
  .meta({ id: 'Versions' })
/** Response of GET /v3/versions. */
export type Versions = z.infer<typeof versionsSchema>

/** Lists versions with their health (docs/api/releases.md#versions). */
export const listVersions: PermittedOperation = {
  operationId: 'listVersions',
  method: 'GET',
  path: '/v3/versions',
  service: 'api-analytics',
  tag: 'releases',
  summary: 'List the versions of services, with their sessions and people without crashes, and their findings',
  permission: 'org:telemetry:read',
  credentials: READER,
  parameters: { query: listVersionsQuerySchema },
  success: {
    status: 200,
    description: 'Versions that telemetry names.',
    contents: {
      'application/json': {
        schema: versionsSchema,
        example: {
          ...EXAMPLE_RANGE,
          versions: [
            {
              ...{ service: EXAMPLE.serviceName, version: EXAMPLE.version, spans: 1_204, errors: 12 },
              ...{ firstAt: EXAMPLE_RANGE.from, lastAt: EXAMPLE_TIMES.createdAt },
              sessions: { total: 310, errored: 9, crashed: 2 },
              people: { total: 204, errored: 8, crashed: 2 },
              findings: { new: 1, regressed: 0 },
            },
          ],
          isCut: false,
        },
      },
    },
  },
  problems: callerProblems,
}
