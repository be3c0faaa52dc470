import type { PayloadFrame } from '../../../shared/queue/payload-frame.ts'

/** Returns a request of one surface with this body, and these fields instead of its own. */
export function exampleFrame(body: string, fields: Partial<PayloadFrame> = {}): PayloadFrame {
  return {
    workspaceId: 'ws_1',
    surfaceId: 'srf_1',
    receivedAtMs: 0,
    contentType: 'application/octet-stream',
    contentEncoding: 'identity',
    attributes: '',
    body: Buffer.from(body),
    ...fields,
  }
}
