import type { ReadPace } from './read-pace.ts'
import type { HttpResponse } from './uws.ts'

/** Response of unknown length, while it is written to one client. */
export class ReplyStream {
  readonly #pace: ReadPace
  #gone = false
  #wake = () => {}

  constructor(pace: ReadPace) {
    this.#pace = pace
  }

  /**
   * Writes all chunks. The head goes with the first one, so that the failure of a source at its start can still become
   * a problem. The next chunk is pulled only when the client has read the last, so memory does not grow with the
   * response. Returns when all is written or the connection is closed, and throws what the source throws.
   */
  async send(res: HttpResponse, chunks: AsyncIterable<Uint8Array>, writeHead: () => void): Promise<void> {
    // Registered once: uWS drops a handler that is registered while another one runs, and this code resumes in such a
    // moment.
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
      this.#pace.moved(chunk.length)
    }
    if (this.#gone) return
    res.cork(() => {
      begin()
      res.end()
    })
  }

  /**
   * Stops writing, because the response must not be touched again. The source is closed when its next chunk arrives.
   */
  abandon(): void {
    this.#gone = true
    this.#wake()
  }

  #writable(): Promise<void> {
    this.#pace.wait()
    return new Promise(resolve => {
      this.#wake = resolve
    })
  }
}
