import { createHash, randomUUID } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { EXAMPLE } from '../../../schemas/http/example-values.ts'
import { releaseSlugOf } from '../../../shared/ids/release-slug.ts'
import type { DescribedOperation } from '../clients/described-service.ts'
import { exampleRequest } from '../clients/example-request.ts'
import { mutatePayload } from '../payloads/mutate-payload.ts'
import type { Random } from '../payloads/scramble-message.ts'
import type { Attacker } from './attacker.ts'
import { spanWith } from './bodies.ts'
import type { Bomb } from './bombs.ts'
import {
  compressed,
  exportCorpus,
  mutated,
  mutatedJson,
  mutatedMap,
  mutatedMetadata,
  REPLAY_CHUNKS,
} from './fuzz-inputs.ts'
import { type FuzzRequest, foreignQuery, toolCall } from './fuzz-queries.ts'
import { pick, weighted } from './fuzz-run.ts'

const SIGNALS = ['traces', 'logs', 'metrics'] as const
/** Ids of created surfaces, keys and releases that are remembered, so that other requests change and delete them. */
const MOST_CREATED = 50

/** One input: requests that are sent one after the other. */
interface Sent {
  readonly kind: string
  readonly requests: readonly FuzzRequest[]
}

/** Makes the requests of a seed. */
interface FuzzRequests {
  next(random: Random): Sent
  /** Makes a request of any operation of the document. */
  ofOperation(random: Random): Sent
  /** Remembers what a request has created. */
  learn(kind: string, text: string): void
}

/** Credentials, operations and bodies of which the requests are made. */
export interface FuzzMaterial {
  readonly seed: number
  readonly attacker: Attacker
  /** Public key of another surface. It sends what is compressed, because false sizes use up the share of their surface. */
  readonly liarKey: string
  /** Public key of a surface that sends nothing but bombs. */
  readonly bomberKey: string
  /** The operations of the document. */
  readonly operations: readonly DescribedOperation[]
  /** Values that the service has stored for the attacker, by the values of the examples that they replace. */
  readonly stored: Readonly<Record<string, string>>
  readonly bombs: readonly Bomb[]
  readonly chunkBombs: readonly Buffer[]
}

/** Creates the requests of an attacker. */
export function createFuzzRequests(material: FuzzMaterial): FuzzRequests {
  const { seed, attacker, liarKey, bomberKey, operations, stored } = material
  const { publicKey, secretKey, sessionToken, surfaceId, workspaceId } = attacker.tenant
  const releaseSlug = stored[EXAMPLE.releaseSlug] ?? ''
  const corpus = exportCorpus(seed)
  const described = operations.filter(({ path }) => !path.startsWith('/drain/'))
  const created = { surfaces: new Recent(), keys: new Recent(), 'api-keys': new Recent(), releases: new Recent() }

  function post(path: string, body: Uint8Array, headers: Record<string, string>, isBomb = false): FuzzRequest {
    const key = isBomb ? bomberKey : headers['content-encoding'] ? liarKey : publicKey
    return {
      ...{ url: attacker.edgeUrl + path, method: 'POST', body: new Uint8Array(body) },
      headers: { 'x-service-public-key': key, ...headers },
    }
  }

  function build(method: string, path: string, body: Uint8Array | string, type = 'application/json'): FuzzRequest {
    return {
      ...{ url: `${attacker.edgeUrl}/v3/releases${path}`, method },
      body: typeof body === 'string' ? body : new Uint8Array(body),
      headers: { authorization: `Bearer ${secretKey}`, 'content-type': type },
    }
  }

  function exported(random: Random): Sent {
    const otlpSignal = pick(SIGNALS, random)
    const isJson = random() < 0.4
    const originals = isJson ? corpus.json : corpus.protobuf
    const { encoding, body } = compressed(mutated(pick(originals[otlpSignal], random), random), random)
    const type = random() < 0.02 ? 'text/html' : isJson ? 'application/json' : 'application/x-protobuf'
    const headers = { 'content-type': type, ...(encoding !== 'identity' && { 'content-encoding': encoding }) }
    return {
      kind: `${otlpSignal} in ${isJson ? 'JSON' : 'protobuf'}`,
      requests: [post(`/drain/v1/${otlpSignal}`, body, headers)],
    }
  }

  function bomb(random: Random): Sent {
    if (random() < 0.2) return chunk(random, pick(material.chunkBombs, random))
    const { otlpSignal, contentType, encoding, body } = pick(material.bombs, random)
    const headers = { 'content-type': contentType, 'content-encoding': encoding }
    return { kind: 'bomb', requests: [post(`/drain/v1/${otlpSignal}`, body, headers, true)] }
  }

  function chunk(random: Random, chunkBomb?: Buffer): Sent {
    const plain = mutated(pick(REPLAY_CHUNKS, random), random)
    const isGzip = chunkBomb !== undefined || random() < 0.5
    const body = chunkBomb ?? (isGzip ? gzipSync(plain, { level: 1 }) : plain)
    const headers = {
      'x-replay-metadata': Buffer.from(mutatedMetadata(random)).toString('base64'),
      ...(isGzip && { 'content-encoding': 'gzip' }),
    }
    const request = post(`/v3/replay/upload/s${Math.floor(random() * 1e9)}`, body, headers, chunkBomb !== undefined)
    return { kind: chunkBomb ? 'replay bomb' : 'replay', requests: [request] }
  }

  function map(random: Random): Sent {
    const path = `${Math.floor(random() * 1e9)}.js.map`
    const bytes = mutatedMap(random)
    const request =
      random() < 0.5
        ? build('PUT', `/${releaseSlug}/source-maps?path=${path}&part=0`, bytes, 'application/octet-stream')
        : build('PUT', `/${releaseSlug}/source-maps/upload?path=${path}`, bytes)
    return { kind: 'map', requests: [request] }
  }

  /** Completes a release with a broken map, and throws in its script, so that the workers trace through it. */
  function tracedMap(random: Random): Sent {
    const version = String(random())
    const script = `https://x.test/${version}.js`
    const slug = releaseSlugOf({ workspaceId, surfaceId, name: version })
    created.releases.add(slug)
    const bytes = mutatedMap(random)
    const hash = createHash('sha256').update(bytes).digest('hex')
    const files = [{ path: 'a.js.map', hash, debugId: '', chunkUrl: script }]
    const exception = { type: `E${version}`, message: 'x', stacktrace: `E: x\n    at f (${script}:1:1)` }
    return {
      kind: 'traced map',
      requests: [
        build('POST', '', JSON.stringify({ version })),
        build('PUT', `/${slug}/source-maps?path=a.js.map&part=0`, bytes, 'application/octet-stream'),
        build('POST', `/${slug}/source-maps/complete`, JSON.stringify({ files, sourceFileCount: 1 })),
        post('/drain/v1/traces', spanWith({ version, exception }), { 'content-type': 'application/x-protobuf' }),
      ],
    }
  }

  function ofOperation(random: Random): Sent {
    const chosen = pick(described, random)
    const { method, query, headers, body, path } = exampleRequest(chosen)
    const isKept = random() < 0.1
    const fill = (text: string) => (isKept ? text : filled(chosen, text, random))
    for (const name of [...query.keys()]) {
      const value = fill(query.get(name) ?? '')
      const isBroken = random() < 0.3
      query.set(name, isBroken ? mutatePayload(Buffer.from(value || '0'), random).toString('latin1') : value)
    }
    const isPublic = chosen.credentials.includes('publicKeyHeader')
    const isBuild = chosen.credentials.includes('secretKey')
    const isRead = method === 'GET' || method === 'DELETE'
    const own = (isPublic || isBuild) && !isRead ? attacker.edgeUrl : attacker.apiUrl
    const url = random() < 0.95 ? own : own === attacker.apiUrl ? attacker.edgeUrl : attacker.apiUrl
    const ownPath = fill(path)
    const broken =
      random() < 0.1 ? encodeURI(mutatePayload(Buffer.from(ownPath), random).toString('latin1')) : undefined
    return {
      kind: `${method} ${chosen.path}`,
      requests: [
        {
          method,
          url: `${url}/${(broken ?? ownPath).replace(/^\/+/, '').replaceAll('#', '')}?${query}`,
          headers: {
            ...Object.fromEntries(headers),
            ...(isPublic && { 'x-service-public-key': publicKey }),
            ...(!isPublic && { authorization: `Bearer ${isBuild ? secretKey : sessionToken}` }),
          },
          body: method === 'GET' ? undefined : typeof body === 'string' ? mutatedJson(fill(body), random) : body,
        },
      ],
    }
  }

  /** Replaces the values of an example by those that the service has stored. Only what was created here is deleted. */
  function filled({ method, path }: DescribedOperation, text: string, random: Random): string {
    const ownValue = (kind: keyof typeof created, example: string) => ({
      [example]: created[kind].any(random) ?? example,
    })
    const values = {
      ...stored,
      ...(method === 'DELETE' && path === '/v3/surfaces/{surfaceId}' && ownValue('surfaces', EXAMPLE.surfaceId)),
      ...(method === 'DELETE' && ownValue('releases', EXAMPLE.releaseSlug)),
      ...ownValue('keys', EXAMPLE.surfaceKeyId),
      ...ownValue('api-keys', EXAMPLE.apiKeyId),
    }
    const replaced = Object.entries(values).reduce((result, [from, to]) => result.replaceAll(from, to), text)
    return random() < 0.8 ? replaced.replace(/(?<="idempotencyKey":")[^"]+/, randomUUID()) : replaced
  }

  const reader = { apiUrl: attacker.apiUrl, sessionToken, stored }
  function queried(random: Random): Sent {
    const { path, request } = foreignQuery(reader, random)
    return { kind: `queried ${path}`, requests: [request] }
  }

  const choose = weighted([
    { weight: 600, make: exported },
    { weight: 100, make: chunk },
    { weight: 20, make: map },
    { weight: 5, make: tracedMap },
    { weight: 0.5, make: bomb },
    { weight: 225, make: ofOperation },
    { weight: 25, make: random => ({ kind: 'agent', requests: [toolCall(reader, random)] }) },
    { weight: 25, make: queried },
  ])
  return {
    next: random => choose(random()).make(random),
    ofOperation,
    learn(kind, text) {
      const id = /"id":"([a-z]+_[0-9a-f]+)"/.exec(text)?.[1]
      const [, collection = ''] = /^POST .*\/([a-z-]+)$/.exec(kind) ?? []
      if (id !== undefined && collection in created) created[collection as keyof typeof created].add(id)
    },
  }
}

/** The last ids of one kind. */
class Recent {
  readonly #ids: string[] = []

  add(id: string): void {
    if (this.#ids.push(id) > MOST_CREATED) this.#ids.shift()
  }

  any(random: Random): string | undefined {
    return this.#ids.length === 0 ? undefined : pick(this.#ids, random)
  }
}
