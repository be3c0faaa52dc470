import { z } from 'zod'
import { CHANGE_ACTIONS } from '../../records/change.ts'
import { shownActorSchema } from '../findings/work.ts'
import { nextCursorSchema } from '../page.ts'

/** A change of a workspace. */
export const listedChangeSchema = z
  .strictObject({
    id: z.string(),
    createdAt: z.iso.datetime(),
    by: shownActorSchema,
    action: z.enum(CHANGE_ACTIONS).meta({
      description: 'Purges of dead letters and deletions of releases are recorded before they begin.',
    }),
    subject: z.string().meta({
      description: 'Id of the surface, key, user, release or erasure. Empty for a change of the workspace.',
    }),
    name: z.string().optional().meta({ description: 'The name of what was created.' }),
    permissions: z
      .array(z.string())
      .optional()
      .meta({ description: 'The permissions of the key or the member afterwards.' }),
  })
  .meta({ id: 'Change', description: 'A change of a workspace. Absent fields are left out.' })

/** Response of GET /v3/changes, newest first. */
export const changesPageSchema = z
  .strictObject({ changes: z.array(listedChangeSchema), nextCursor: nextCursorSchema })
  .meta({ id: 'ChangesPage' })
/** Response of GET /v3/changes. */
export type ChangesPage = z.infer<typeof changesPageSchema>
