/** A request of the page that has ended. */
interface EndedRequest {
  readonly method: string
  /** Without query, which may name people. */
  readonly url: string
  /** 0 without a response. */
  readonly status: number
}

type Listener = (request: EndedRequest) => void

/** Tells a recording which requests the page makes, since it is loaded later than they are watched. */
export class RequestFeed {
  readonly #listeners = new Set<Listener>()

  /** Calls a listener for each request that ends. Returns a function that stops it. */
  subscribe(listener: Listener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  add(method: string, { origin, pathname }: URL, status: number): void {
    for (const listener of this.#listeners) listener({ method, url: origin + pathname, status })
  }
}
