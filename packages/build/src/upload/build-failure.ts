import type { ReleaseBuildResult } from '../../../../schemas/http/releases/schemas.ts'

/** Ends the upload of a build. The result is reported to the service, printed, and mapped to the exit code. */
export class BuildFailure extends Error {
  override readonly name = 'BuildFailure'
  readonly result: Exclude<ReleaseBuildResult, 'ok'>

  constructor(result: Exclude<ReleaseBuildResult, 'ok'>, message: string) {
    super(message)
    this.result = result
  }
}
