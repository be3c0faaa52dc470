import type { LookupAddress } from 'node:dns'
import { lookup, Resolver } from 'node:dns/promises'
import { SECOND_MS } from '../../schemas/units.ts'
import type { AllowedReceivers } from './receiver-address.ts'

/** Two tries of two and four seconds for each name server. */
const PATIENCE = { timeout: 2 * SECOND_MS, tries: 2 }

/**
 * Returns all addresses of a host, those of IPv4 first. Throws an error with a code of DNS if it has none. `lookup` of Node takes
 * one of the four threads that files and compression share, for as long as a name server of a client is silent, so it is only for
 * hosts that the operator allows: these may be in /etc/hosts or in a search domain. Others are fully qualified names.
 */
export async function lookUpHost(
  { hosts }: AllowedReceivers,
  host: string,
  resolver = new Resolver(PATIENCE),
): Promise<LookupAddress[]> {
  if (hosts.has(host)) return lookup(host, { all: true })
  const [v4, v6] = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)])
  if (v4.status === 'rejected' && v6.status === 'rejected') throw v4.reason
  return [...addressesIn(v4, 4), ...addressesIn(v6, 6)]
}

function addressesIn(result: PromiseSettledResult<string[]>, family: number): LookupAddress[] {
  return result.status === 'fulfilled' ? result.value.map(address => ({ address, family })) : []
}
