import { type Destination, plainFetch } from './delivery/send.ts'

/** Receipts that are looked up at a time. */
const AT_ONCE = 10
const TIMEOUT_MS = 5_000
/** Receipts whose requests are stored, which does not change any more. */
const stored = new Set<string>()

/** Returns how many of these receipts show that their request is stored. Those that cannot be read count as not stored. */
export async function readReceipts(destination: Destination, receipts: readonly string[]): Promise<number> {
  const open = receipts.filter(receipt => !stored.has(receipt)).slice(-AT_ONCE)
  await Promise.all(
    open.map(async receipt => {
      if (await isStored(destination, receipt)) stored.add(receipt)
    }),
  )
  return receipts.filter(receipt => stored.has(receipt)).length
}

async function isStored({ url, key }: Destination, receipt: string): Promise<boolean> {
  try {
    const response = await plainFetch(`${url}/v3/receipts/${encodeURIComponent(receipt)}`, {
      headers: { 'x-service-public-key': key },
      credentials: 'omit',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
    if (!response.ok) return false
    const { receipt: found } = (await response.json()) as { readonly receipt?: { readonly status?: string } }
    return found?.status === 'stored'
  } catch {
    return false
  }
}
