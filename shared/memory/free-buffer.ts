/**
 * Frees the memory of a buffer now. Nothing may use the buffer afterwards, nor a part of it. V8 would count it as free only after
 * a garbage collection, and collects the whole heap for every 30 MB of buffers. Leaves a buffer alone that is small enough to
 * share its memory with others.
 */
export function freeBuffer({ buffer }: Buffer): void {
  if (buffer.byteLength > Buffer.poolSize) (buffer as ArrayBuffer).transfer(0)
}
