/** What is said once for all operations, in Markdown. */
export const INTRODUCTION = [
  'Takes in telemetry of browsers and servers, groups exceptions into findings, and shows every retained span of their traces.',
  'Everything belongs to one workspace, and a credential opens the workspace that it is of. Things of another workspace are answered as things that do not exist.',
  'What is acknowledged with 200 is on disk, and is stored or kept as refused with its reason. A request that was answered 429 or 503, or not at all, may be sent again as it was, after `Retry-After` seconds where there is such a header.',
  'A refusal is a `Problem`; its `message` names the field and the rule. Checks come in this order: path and method, credential, permission, size, backpressure, shape. A path that there is none of is answered 404 with the code `NOT_FOUND`.',
  'Every path with GET takes HEAD. Every path takes OPTIONS: 204 with `Allow`, and with what a preflight asks for on the paths whose answers have CORS headers.',
  'Lists are pages: `limit` is how many entries at most, and `nextCursor`, sent as `cursor`, asks for those that follow; it is null on the last page.',
  'Times are RFC 3339 in UTC. Fields of a body that its schema does not name are ignored, or refused where it says `additionalProperties: false`.',
].join('\n\n')
