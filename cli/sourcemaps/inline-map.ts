/** The bytes of a source map in a `data:` URL, or undefined when it cannot be read as one. */
export function decodeDataUrl(url: string): Buffer | undefined {
  const comma = url.indexOf(',')
  if (comma === -1) return undefined
  const body = url.slice(comma + 1)
  if (/;\s*base64$/i.test(url.slice(0, comma))) return Buffer.from(body, 'base64')
  try {
    return Buffer.from(decodeURIComponent(body))
  } catch {
    return undefined // a percent sign that begins nothing
  }
}
