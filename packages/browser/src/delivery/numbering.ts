import { newId } from '../session.ts'

/** A page has this many numbers. */
const END = 100_000

/**
 * Numbers the requests of the page, so that the service knows a repetition and what is missing
 * (docs/api/requests.md#page-requests).
 */
export class Numbering {
  #session = ''
  #page = ''
  #next = 0

  /** Id of the page in the session. */
  get page(): string {
    return this.#page
  }

  /** Returns the query of the next request. Another session begins another page. */
  next(session: string): string {
    if (session !== this.#session || this.#next === END) {
      this.#session = session
      this.#page = newId()
      this.#next = 0
    }
    return `session=${encodeURIComponent(session)}&page=${this.#page}&sequence=${this.#next++}`
  }
}
