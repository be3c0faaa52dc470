/**
 * Returns another address of a server of this machine. It is none of the loopback, so workers send to it what they send to
 * another machine: compressed inserts.
 */
export function distantUrl(url: string): string {
  const distant = new URL(url)
  distant.hostname = '0.0.0.0'
  return distant.href
}
