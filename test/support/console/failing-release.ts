import { Installation } from '../../../cli/demo/installation.ts'
import { exportsOf } from '../../../cli/demo/otlp.ts'
import { failCheckout } from '../../../cli/demo/page-failures.ts'
import { createRandom } from '../../../cli/demo/random.ts'
import { loadRecorded } from '../../../cli/demo/recorded.ts'
import { Telemetry } from '../../../cli/demo/telemetry.ts'

interface Access {
  readonly baseUrl: string
  readonly publicKey: string
  readonly secretKey: string
  readonly sessionToken: string
}

/** Releases the page of the shop under this version, and has a checkout of it fail once. Returns the id of its trace. */
export async function failInRelease(access: Access, version: string): Promise<string> {
  const installation = new Installation({ ...access, url: access.baseUrl, token: access.sessionToken })
  const { releases, checkout } = loadRecorded()
  const build = releases.at(-1)
  if (build === undefined) throw new Error('no release was recorded')
  await installation.release({ ...build, version })
  const telemetry = new Telemetry(createRandom('1', version))
  const { id } = failCheckout(telemetry, { sessionId: 'session-1', version }, Date.now(), checkout)
  for (const body of exportsOf('traces', telemetry.traces, 100)) await installation.send('/v1/traces', body)
  await installation.untilStored()
  return id
}
