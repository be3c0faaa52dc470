import type { ReleaseBuildResult } from '../../schemas/http/releases/schemas.ts'

/** Ends the upload of a build with the result that is reported, printed and turned into the exit code. */
export class BuildStop extends Error {
  override readonly name = 'BuildStop'
  readonly result: Exclude<ReleaseBuildResult, 'ok'>

  constructor(result: Exclude<ReleaseBuildResult, 'ok'>, message: string) {
    super(message)
    this.result = result
  }
}

/** Up to `limit` lines, and how many more there are. */
export function listed(lines: readonly string[], limit = 20): string {
  const more = lines.length - limit
  return [...lines.slice(0, limit), ...(more > 0 ? [`and ${more} more`] : [])].map(line => `\n  ${line}`).join('')
}
