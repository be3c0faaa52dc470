/** Encodes the value of x-replay-metadata as an SDK does. */
export function encodeReplayMetadata(metadata: object): string {
  return Buffer.from(JSON.stringify(metadata)).toString('base64')
}
