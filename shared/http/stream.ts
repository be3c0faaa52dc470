import type { HttpResponse } from './uws.ts'

/** An answer of unknown length on its way to one client. */
export class ReplyStream {
  #gone = false
  #wake = () => {}

  /**
   * Writes the head with the first chunk, so that a source which fails at once can still be answered as a problem. Pulls
   * the next chunk only when the client has taken the last: memory does not grow with the answer. Returns when all is
   * written or the connection is gone, and throws what the source throws.
   */
  async send(res: HttpResponse, chunks: AsyncIterable<Uint8Array>, writeHead: () => void): Promise<void> {
    // Registered once: uWS forgets a handler that is registered while another runs, which is when this code wakes up.
    res.onWritable(() => {
      this.#wake()
      return true
    })
    let begun = false
    const begin = () => {
      if (!begun) writeHead()
      begun = true
    }
    for await (const chunk of chunks) {
      if (this.#gone) return
      let taken = true
      res.cork(() => {
        begin()
        taken = res.write(chunk)
      })
      if (!taken) await this.#writable()
      if (this.#gone) return
    }
    if (this.#gone) return
    res.cork(() => {
      begin()
      res.end()
    })
  }

  /** The response must not be touched again; the source is told to stop as soon as it is next heard of. */
  abandon(): void {
    this.#gone = true
    this.#wake()
  }

  #writable(): Promise<void> {
    return new Promise(resolve => {
      this.#wake = resolve
    })
  }
}
