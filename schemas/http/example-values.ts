/**
 * Values of the examples in the document. They tell one story, in which every operation can be sent as its example
 * shows. A workspace has a surface whose page throws an exception. Its build has registered version 1.4.0 and uploads a
 * source map. Derived ids (release, finding, object keys, the hash of the map) are those that the service computes.
 */
export const EXAMPLE = {
  workspaceId: 'ws_67459bf3ecc7cb1274c0',
  workspaceSlug: 'acme',
  userId: 'user_7f3a',
  memberId: 'user_8b1c',
  surfaceId: 'srf_e275cfe951dab4b87f6b',
  surfaceKeyId: 'key_771227213fa3a4bb5d26',
  apiKeyId: 'key_3c9e0d5b81f24a6697aa',
  erasureId: 'ers_8c1d6e2f90a4b7353e11',
  sessionId: 'session-1',
  deviceId: 'b4f9c2de-57f2-4a4e-8f0e-1c6d0d3f7a11',
  windowId: 'w1',
  serviceName: 'shop',
  version: '1.4.0',
  releaseSlug: 'rel_asikh4qmg7banudokni5oiju35',
  /** That of its frames as the source map has them. */
  findingId: 'fnd_4g6peb7eom2yodowmzpd5xfhbe',
  mergedFindingId: 'fnd_5tq2cwhl6xbn3r7ymdk4gpazse',
  traceId: '5b8efff798038103d269b633813fc60c',
  spanId: 'eee19b7ec3c1b174',
  metricName: 'http.server.request.duration',
  receiptId: 'rct_agqmiudmaaacl7n4nueqaaadonwb7x244uo4bjfc2u2c_srf_e275cfe951dab4b87f6b',
  deadLetterId: 'dlt_A3G1i2gAAAAAADAxOTk2YzVhLTBiMWEtNzAwMC04MDAwLTNmMGMyZjFkN2I2MA',
  mapPath: 'assets/app.js.map',
  /** SHA-256 of EXAMPLE_MAP as `JSON.stringify` writes it. */
  mapSha256: '66a62bda7c938492f630e8d56446b1f009af1600bed7c28a20a64a03ca56b11c',
  /** A range that contains everything the service ever receives. */
  from: '2026-01-01T00:00:00Z',
  to: '2099-01-01T00:00:00+02:00',
  /** SHA-256 of a map that is never sent. */
  vendorMapSha256: '630ba09448af522154f38ef7685ef1f44b0f3e9430f80829a03ce24f400f3754',
  /** When the page was recorded, in Unix ms. */
  recordedAtMs: 1_790_000_000_000,
} as const

/** Times of the story, as the service returns them. */
export const EXAMPLE_TIMES = {
  firstEventAt: '2026-09-21T14:13:20.000Z',
  lastEventAt: '2026-09-21T14:13:20.020Z',
  startedAt: '2026-09-21T14:13:20.000000000Z',
  endedAt: '2026-09-21T14:13:20.042000000Z',
  thrownAt: '2026-09-21T14:13:20.041000000Z',
  receivedAt: '2026-09-21T14:13:21.306Z',
  createdAt: '2026-09-21T09:00:00.000Z',
  completedAt: '2026-09-21T09:00:04.812Z',
  expiresAt: '2026-10-21T00:00:00.000Z',
} as const

/** The exception of the story. */
export const EXAMPLE_EXCEPTION = {
  type: 'EmptyCartError',
  message: 'the cart is empty',
  stacktrace: 'EmptyCartError: the cart is empty\n    at checkout (https://shop.example/assets/app.js:1:1)',
} as const

/** Counters of the recorded events of the story. */
export const EXAMPLE_REPLAY_COUNTERS = { eventCount: 2, storedBytes: 150, decompressedBytes: 194 } as const
