import { EXAMPLE, EXAMPLE_TIMES } from '../example-values.ts'

const begun = {
  id: EXAMPLE.erasureId,
  kind: 'identifier',
  subjectHash: 'b94f6f125c79e3a5ffaa826f584c10d52ada669e6762051b826b55776d05aed2',
  state: 'deleting',
  failure: null,
  createdAt: EXAMPLE_TIMES.createdAt,
  createdBy: EXAMPLE.userId,
  completedAt: null,
  sessions: 0,
  rows: {},
  objects: 0,
  objectBytes: 0,
} as const

const done = {
  ...begun,
  state: 'done',
  completedAt: EXAMPLE_TIMES.completedAt,
  sessions: 2,
  rows: { spans: 41, session_identities: 2, replay_chunks: 3 },
  objects: 3,
  objectBytes: 48_211,
} as const

/** Responses to the examples of the operations, by operation. */
export const ANSWERS = {
  createErasure: { erasure: begun },
  listErasures: { erasures: [begun], nextCursor: null },
  readErasure: { erasure: done },
} as const
