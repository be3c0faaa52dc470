import { z } from 'zod'
import { SESSION_ID_MAX_CHARACTERS } from '../../../schemas/http/fields.ts'
import { pageLimit } from '../../../schemas/http/page.ts'
import { readTimelineQuerySchema } from '../../../schemas/http/sessions/timeline.ts'
import { SESSIONS } from '../../http/resource.ts'
import { readTimelinePage } from '../../sessions/timeline.ts'
import { defineTool } from '../tool.ts'
import { nextCursor, text } from './fields.ts'

/** Reads the timeline of a session. */
export const sessionTimelineTool = defineTool({
  name: 'session_timeline',
  title: 'Get the timeline of a session',
  description:
    'Returns what happened in the session of one user, oldest first: spans, log records, findings, identities and parts of its recording. Use `kinds` and a time to keep it short.',
  permission: 'org:sessions:read',
  resource: SESSIONS,
  madeOf: ['traces', 'logs', 'sessions', 'replay'],
  input: readTimelineQuerySchema.safeExtend({
    // A character has at most two UTF-16 units.
    sessionId: text(2 * SESSION_ID_MAX_CHARACTERS, 'The id of a session.'),
    limit: pageLimit(100, 40),
  }),
  output: { entries: z.array(z.looseObject({ kind: z.string(), at: z.string() })), nextCursor },
  async read(deps, { query: { sessionId, ...query }, ...request }) {
    const page = await readTimelinePage(deps, { ...request, query }, sessionId)
    if (!page.ok) return page
    const entries = page.value.entries.map(({ receivedCount, surfaceId: _, ...entry }) => ({
      ...entry,
      ...(receivedCount > 1 && { receivedCount }),
    }))
    return { ok: true, value: { answer: { entries, nextCursor: page.value.nextCursor } } }
  },
})
