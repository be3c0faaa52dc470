import type { Readable } from 'node:stream'
import { type LetterHead, openLetterBody, readLetterHead } from '../../letters/read-letters.ts'
import { readDeadLetterBody } from '../../schemas/http/dead-letters.ts'
import { type Header, NO_SNIFF, NO_STORE, type Reply, type Route } from '../../shared/http/route.ts'
import type { ObjectStore } from '../../shared/object-store/types.ts'
import { type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import type { Outcome } from '../http/outcome.ts'
import { notFound } from '../http/resource.ts'
import { type LoadLetterDeps, loadLetter } from './load-letter.ts'
import { DEAD_LETTERS } from './resource.ts'

interface Deps extends GuardedRouteDeps, LoadLetterDeps {
  readonly objects: Pick<ObjectStore, 'getStream'>
}

/** A client has chosen the bytes. No browser may render them, guess their type or run them in this origin. */
const HEADERS: readonly Header[] = [
  ['content-type', 'application/octet-stream'],
  ['content-disposition', 'attachment; filename="dead-letter.bin"'],
  NO_SNIFF,
  ['content-security-policy', "default-src 'none'; sandbox"],
  NO_STORE,
]

interface Body {
  readonly head: LetterHead
  readonly bytes: Readable | Buffer
}

/** Returns the route that streams the body of a dead letter as it was sent (docs/api/dead-letters.md#replay-letters). */
export function readDeadLetterBodyRoute(deps: Deps): Route {
  const { objects } = deps
  return guardedRoute(deps, readDeadLetterBody, {
    resource: DEAD_LETTERS,
    reply: bodyReply,
    async run({ workspaceId, param, deadline }): Promise<Outcome<Body>> {
      const loaded = await loadLetter(deps, workspaceId, param('letterId'), deadline)
      const head = loaded && (await readLetterHead(objects, loaded.letter))
      if (loaded === undefined || head === undefined) return notFound(DEAD_LETTERS)
      if (loaded.letter.bodyBytes === 0) return { ok: true, value: { head, bytes: Buffer.alloc(0) } }
      const bytes = await openLetterBody(objects, loaded.letter)
      return bytes ? { ok: true, value: { head, bytes } } : notFound(DEAD_LETTERS)
    },
  })
}

function bodyReply({ head, bytes }: Body): Reply {
  const described: Header[] = [
    ['x-letter-content-type', head.contentType],
    ['x-letter-content-encoding', head.contentEncoding],
  ]
  const close = Buffer.isBuffer(bytes) ? {} : { onEnd: () => void bytes.destroy() }
  return { status: 200, headers: [...HEADERS, ...described], body: bytes, ...close }
}
