const MARK = [0xef, 0xbb, 0xbf]
const GUARD = Buffer.from(")]}'")
const LINE_FEED = 0x0a

/**
 * Finds where the JSON of a source map begins, in chunks of any size. ECMA-426 allows a byte order mark before it, and a line
 * that begins with `)]}'`, which some servers add so that pages cannot run the JSON as a script.
 */
export class MapStart {
  #marks = 0
  #guards = 0
  #isFound = false

  /** Returns how many of the next bytes come before the JSON, or -1 if they begin neither a map nor what may precede one. */
  skip(bytes: Uint8Array): number {
    if (this.#isFound) return 0
    for (let at = 0; at < bytes.length; at++) {
      if (this.#guards === GUARD.length) {
        const end = bytes.indexOf(LINE_FEED, at)
        this.#isFound = end >= 0
        return end < 0 ? bytes.length : end + 1
      }
      const isMarked = this.#marks === 0 || this.#marks === MARK.length
      if (this.#guards === 0 && bytes[at] === MARK[this.#marks]) this.#marks++
      else if (isMarked && bytes[at] === GUARD[this.#guards]) this.#guards++
      else {
        this.#isFound = isMarked && this.#guards === 0
        return this.#isFound ? at : -1
      }
    }
    return bytes.length
  }
}
