import { compress, type EncodedBody, encode } from './compress.ts'
import type { Delivery, NewRequest } from './delivery.ts'

/** A request whose body is still a text. */
export type TextRequest = Omit<NewRequest, 'body' | 'isGzip' | 'headers'> & {
  readonly text: string
  readonly headers?: NewRequest['headers']
}

/** Compresses bodies on their way to the spool. What is being compressed when the page ends is sent as it is. */
export class Outbox {
  readonly #delivery: Pick<Delivery, 'add' | 'end'>
  readonly #compressing = new Set<TextRequest>()

  constructor(delivery: Pick<Delivery, 'add' | 'end'>) {
    this.#delivery = delivery
  }

  /** Adds a request. Resolves when it would survive the page. */
  async add(request: TextRequest): Promise<void> {
    this.#compressing.add(request)
    const body = await compress(request.text).catch(() => encode(request.text))
    if (this.#compressing.delete(request)) await this.#delivery.add(withBody(request, body))
  }

  /** Sends these requests at the end of the page, with what is being compressed. */
  end(requests: readonly TextRequest[]): void {
    const last = [...this.#compressing, ...requests]
    this.#compressing.clear()
    this.#delivery.end(last.map(request => withBody(request, encode(request.text))))
  }
}

function withBody({ text: _, headers = {}, ...request }: TextRequest, body: EncodedBody): NewRequest {
  return { ...request, ...body, headers }
}
