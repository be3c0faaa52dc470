/** How Prometheus classifies a refused query: `bad_data` for its text, `execution` for its size or its data. */
type PromqlErrorType = 'bad_data' | 'execution'

/** Message for a query that needs more memory or time than one may have, as Prometheus words it. */
export const TOO_MANY_SAMPLES =
  'query processing would load too many samples into memory in query execution: request fewer series, a longer step or a shorter range'

/** A query that is refused. The message is for its author. */
export class PromqlError extends Error {
  readonly type: PromqlErrorType

  constructor(message: string, type: PromqlErrorType = 'bad_data') {
    super(message)
    this.type = type
  }
}
