import { Option } from 'commander'
import { z } from 'zod'
import { ConfigError } from '../../../shared/runtime/config.ts'
import type { ReadCommandContext } from '../../command-context.ts'
import { findLocalApi } from '../../local-environment.ts'
import { type ApiReader, createApiReader } from '../../reads/api-reader.ts'
import { parsedBy } from '../../terminal.ts'

const urlSchema = z.url({ protocol: /^https?$/, error: 'It must be a URL, such as https://penstock.example.' })

/** Options of every command that reads from the API. */
export interface ReadOptions {
  readonly url?: string
  readonly json?: boolean
}

/** Where the API is, for the help of every command that reads from it. */
export const ACCESS_HELP = `
The address is that of --url, else of PENSTOCK_URL, and the session token that of PENSTOCK_TOKEN. Without either, the command
reads from the installation that "npm start" has created in this directory.`

/** Returns the option that names the API. */
export function urlOption(): Option {
  return new Option('--url <url>', 'the address of the API').argParser(parsedBy(urlSchema))
}

/** Returns a reader of the API. Throws a ConfigError if nothing says where it is. */
export async function connectReader(context: ReadCommandContext, { url }: ReadOptions): Promise<ApiReader> {
  const { env, directory, fetch } = context
  const given = url ?? env.PENSTOCK_URL
  const token = env.PENSTOCK_TOKEN
  if (given !== undefined && token !== undefined) return createApiReader({ url: given, token }, fetch)
  if (given !== undefined || token !== undefined) {
    throw new ConfigError(
      given === undefined ? 'set PENSTOCK_URL or pass --url' : 'set PENSTOCK_TOKEN to a session token',
    )
  }
  const local = await findLocalApi(env, directory)
  if (local === undefined) throw new ConfigError('set PENSTOCK_URL and PENSTOCK_TOKEN, or run "npm start" first')
  return createApiReader({ url: local.baseUrl, token: local.sessionToken }, fetch)
}
