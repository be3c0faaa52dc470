/** How Prometheus classifies a refused query: `bad_data` for its text, `execution` for its size or its data. */
type PromqlErrorType = 'bad_data' | 'execution'

/** A query that is refused. The message is for its author. */
export class PromqlError extends Error {
  readonly type: PromqlErrorType

  constructor(message: string, type: PromqlErrorType = 'bad_data') {
    super(message)
    this.type = type
  }
}
