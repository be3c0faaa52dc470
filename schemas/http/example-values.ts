/**
 * What the examples of the document are about: one story, in which every operation can be sent as its example has it. A
 * workspace has a surface, whose page throws; its build has registered version 1.4.0 and uploads a source map. Ids that
 * derive from others (release, finding, object keys, the hash of the map) are those that the service gives.
 */
export const EXAMPLE = {
  workspaceId: 'ws_67459bf3ecc7cb1274c0',
  workspaceSlug: 'acme',
  userId: 'user_7f3a',
  surfaceId: 'srf_e275cfe951dab4b87f6b',
  surfaceKeyId: 'key_771227213fa3a4bb5d26',
  apiKeyId: 'key_3c9e0d5b81f24a6697aa',
  sessionId: 'session-1',
  deviceId: 'b4f9c2de-57f2-4a4e-8f0e-1c6d0d3f7a11',
  windowId: 'w1',
  serviceName: 'shop',
  version: '1.4.0',
  releaseSlug: 'rel_asikh4qmg7banudokni5oiju35',
  findingId: 'fnd_uqyjqqgmhuid76py5w6x7srhey',
  traceId: '5b8efff798038103d269b633813fc60c',
  spanId: 'eee19b7ec3c1b174',
  receiptId: 'rct_agqmiudmaaacl7n4nueqaaadonwb7x244uo4bjfc2u2c_srf_e275cfe951dab4b87f6b',
  mapPath: 'assets/app.js.map',
  /** Of EXAMPLE_MAP as `JSON.stringify` writes it. */
  mapSha256: '66a62bda7c938492f630e8d56446b1f009af1600bed7c28a20a64a03ca56b11c',
  /** A range in which everything is that the service ever receives. */
  from: '2026-01-01T00:00:00Z',
  to: '2099-01-01T00:00:00+02:00',
  /** Of a map that was never sent. */
  vendorMapSha256: '630ba09448af522154f38ef7685ef1f44b0f3e9430f80829a03ce24f400f3754',
  /** Unix ms. */
  recordedAtMs: 1_790_000_000_000,
} as const

export const EXAMPLE_MAP = { version: 3, sources: ['cart.ts'], names: [], mappings: 'AAAA' } as const
export const EXAMPLE_MAP_TEXT = JSON.stringify(EXAMPLE_MAP)

const EXCEPTION = {
  type: 'EmptyCartError',
  message: 'the cart is empty',
  stacktrace: 'EmptyCartError: the cart is empty\n    at checkout (https://shop.example/assets/app.js:1:1)',
} as const

const text = (key: string, stringValue: string) => ({ key, value: { stringValue } })

/** An OTLP export of one failed span that carries an exception, in JSON. */
export const EXAMPLE_EXPORT = {
  resourceSpans: [
    {
      resource: {
        attributes: [text('service.name', EXAMPLE.serviceName), text('service.version', EXAMPLE.version)],
      },
      scopeSpans: [
        {
          spans: [
            {
              traceId: EXAMPLE.traceId,
              spanId: EXAMPLE.spanId,
              name: 'GET /cart',
              kind: 2,
              startTimeUnixNano: `${EXAMPLE.recordedAtMs}000000`,
              endTimeUnixNano: `${EXAMPLE.recordedAtMs + 42}000000`,
              attributes: [text('session.id', EXAMPLE.sessionId), text('http.route', '/cart')],
              events: [
                {
                  name: 'exception',
                  timeUnixNano: `${EXAMPLE.recordedAtMs + 41}000000`,
                  attributes: [
                    text('exception.type', EXCEPTION.type),
                    text('exception.message', EXCEPTION.message),
                    text('exception.stacktrace', EXCEPTION.stacktrace),
                  ],
                },
              ],
              status: { code: 2, message: EXCEPTION.message },
            },
          ],
        },
      ],
    },
  ],
} as const

/** The same in protobuf, as base64. */
export const EXAMPLE_EXPORT_BASE64 =
  'CpsDCjQKFgoMc2VydmljZS5uYW1lEgYKBHNob3AKGgoPc2VydmljZS52ZXJzaW9uEgcKBTEuNC4wEuICEt8CChBbjv/3mAOBA9JptjOBP8YMEgju4Zt+w8GxdCoJR0VUIC9jYXJ0MAI5AADzI4Rb1xhBgN5zJoRb1xhKGQoKc2Vzc2lvbi5pZBILCglzZXNzaW9uLTFKFQoKaHR0cC5yb3V0ZRIHCgUvY2FydFrYAQlAnGQmhFvXGBIJZXhjZXB0aW9uGiIKDmV4Y2VwdGlvbi50eXBlEhAKDkVtcHR5Q2FydEVycm9yGigKEWV4Y2VwdGlvbi5tZXNzYWdlEhMKEXRoZSBjYXJ0IGlzIGVtcHR5GnQKFGV4Y2VwdGlvbi5zdGFja3RyYWNlElwKWkVtcHR5Q2FydEVycm9yOiB0aGUgY2FydCBpcyBlbXB0eQogICAgYXQgY2hlY2tvdXQgKGh0dHBzOi8vc2hvcC5leGFtcGxlL2Fzc2V0cy9hcHAuanM6MToxKXoVEhF0aGUgY2FydCBpcyBlbXB0eRgC'

/** Recorded events as JSON lines: a page, and all that was on it. */
export const EXAMPLE_EVENTS = [
  { type: 4, data: { href: 'https://shop.example/cart', width: 1280, height: 720 }, timestamp: EXAMPLE.recordedAtMs },
  { type: 2, data: { node: { type: 0, childNodes: [], id: 1 } }, timestamp: EXAMPLE.recordedAtMs + 20 },
]
  .map(event => `${JSON.stringify(event)}\n`)
  .join('')

export const EXAMPLE_REPLAY_METADATA = {
  windowId: EXAMPLE.windowId,
  segmentId: 0,
  firstTs: EXAMPLE.recordedAtMs,
  lastTs: EXAMPLE.recordedAtMs + 20,
  eventCount: 2,
  hasFullSnapshot: true,
} as const
