import {
  readScrubbing,
  replaceScrubbing,
  replaceScrubbingSchema,
  type ScrubbingAnswer,
  type TriedScrubbing,
  tryScrubbing,
  tryScrubbingSchema,
} from '../schemas/http/privacy/scrubbing.ts'
import { DEFAULT_SCRUBBING, type Scrubbing, type ScrubbingRule } from '../schemas/records/scrubbing.ts'
import type { Directory } from '../shared/directory/directory.ts'
import type { Route } from '../shared/http/route.ts'
import { errorMessage } from '../shared/runtime/errors.ts'
import { compilePattern } from '../shared/scrubbing/pattern-rules.ts'
import { Scrubber } from '../shared/scrubbing/scrubber.ts'
import { bodyRoute } from './http/body-route.ts'
import { type CreationRouteDeps, creationRoute } from './http/creation-route.ts'
import { authorOf, queryDirectory } from './http/directory.ts'
import { type GuardedRouteDeps, guardedRoute } from './http/guarded-route.ts'
import { invalid, type Outcome, okReply, otherRevision, renderOutcome, replyUnlessUnavailable } from './http/outcome.ts'
import type { Resource } from './http/resource.ts'

interface Deps extends GuardedRouteDeps, CreationRouteDeps {
  readonly directory: Pick<Directory, 'scrubbing' | 'replaceScrubbing' | 'scrubbingKey'>
}

/** Returns the routes of the rules of scrubbing (docs/api/scrubbing.md). */
export function scrubbingRoutes(deps: Deps): Route[] {
  return [readScrubbingRoute(deps), replaceScrubbingRoute(deps), tryScrubbingRoute(deps)]
}

/** The rules of a workspace. */
const RULES: Resource = {
  notFound: { code: 'NOT_FOUND', message: 'there is no such workspace' },
  unavailable: {
    code: 'INGEST_INFRA_UNAVAILABLE',
    message: 'the rules of scrubbing are unavailable: retry after the delay',
    retryAfterSeconds: 5,
  },
}

function readScrubbingRoute({ directory, ...deps }: Deps): Route {
  return guardedRoute(deps, readScrubbing, {
    resource: RULES,
    async run({ workspaceId }): Promise<Outcome<ScrubbingAnswer>> {
      return { ok: true, value: present(await queryDirectory(directory.scrubbing(workspaceId))) }
    },
  })
}

function replaceScrubbingRoute(deps: Deps): Route {
  return creationRoute(deps, replaceScrubbing, {
    resource: RULES,
    body: replaceScrubbingSchema,
    reply: okReply,
    async create({ caller, body }): Promise<Outcome<ScrubbingAnswer>> {
      const fault = patternFault(body.rules)
      if (fault !== undefined) return invalid(fault)
      const { workspaceId } = caller
      const author = authorOf(caller, deps.now())
      const replaced = await queryDirectory(deps.directory.replaceScrubbing({ workspaceId, ...body }, author))
      return typeof replaced === 'number' ? otherRevision(replaced) : { ok: true, value: present(replaced) }
    },
  })
}

function tryScrubbingRoute({ authenticate, directory, logger }: Deps): Route {
  return bodyRoute(authenticate, tryScrubbing, {
    resource: RULES,
    body: tryScrubbingSchema,
    handle({ caller: { workspaceId }, body, exchange, closed }) {
      const answer = async (): Promise<Outcome<TriedScrubbing>> => {
        const fault = patternFault(body.rules ?? [])
        if (fault !== undefined) return invalid(fault)
        const kept = body.rules ? undefined : await queryDirectory(directory.scrubbing(workspaceId))
        const rules = body.rules ?? kept?.rules ?? DEFAULT_SCRUBBING
        const hashKey = await queryDirectory(directory.scrubbingKey(workspaceId))
        return { ok: true, value: tryRules(new Scrubber({ revision: 1, rules, hashKey }), rules, body.attributes) }
      }
      const operation = tryScrubbing
      const makeReply = async () => renderOutcome(await answer(), { operation, reply: okReply })
      return replyUnlessUnavailable(makeReply, {
        ...{ operation, unavailable: RULES.unavailable, logger, request: exchange, closed },
      })
    },
  })
}

/** Returns why a pattern of these rules cannot be used, or undefined. */
function patternFault(rules: readonly ScrubbingRule[]): string | undefined {
  for (const [i, { pattern }] of rules.entries()) {
    try {
      if (pattern !== undefined) compilePattern(pattern)
    } catch (error) {
      return `rules.${i}.pattern ${errorMessage(error)}`
    }
  }
  return undefined
}

/** Returns what rules make of attributes. */
function tryRules(
  scrubber: Scrubber,
  rules: readonly ScrubbingRule[],
  attributes: Readonly<Record<string, unknown>>,
): TriedScrubbing {
  const used: ScrubbingRule[] = []
  const after = scrubber.scrubJson(attributes, used) as TriedScrubbing['attributes']
  return {
    attributes: after,
    rules: rules.map(rule => ({ name: rule.name, values: used.filter(other => other === rule).length })),
  }
}

function present(scrubbing: Scrubbing | undefined): ScrubbingAnswer {
  if (scrubbing === undefined) return { revision: 0, rules: DEFAULT_SCRUBBING.map(rule => ({ ...rule })) }
  const { revision, changedAt, rules } = scrubbing
  return { revision, changedAt, rules }
}
