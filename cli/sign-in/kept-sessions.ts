import { chmod, mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import { parseJson } from '../../shared/json/parse-json.ts'

const sessionSchema = z.object({
  /** Address of the API, as it was given. */
  url: z.string(),
  issuer: z.string(),
  clientId: z.string(),
  accessToken: z.string(),
  refreshToken: z.string().optional(),
  /** Unix ms. */
  expiresAtMs: z.number(),
})
/** A sign-in at one installation. */
export type KeptSession = z.infer<typeof sessionSchema>

const fileSchema = z.object({ sessions: z.array(sessionSchema) })
/** Installations that are remembered, the last signed in first. */
const SESSIONS_MAX = 20

type Environment = Readonly<Record<string, string | undefined>>

/** Returns the file of the sign-ins: in the user's folder of settings (XDG). */
export function sessionsPath(env: Environment): string {
  const folder = env.XDG_CONFIG_HOME || join(env.HOME || homedir(), '.config')
  return join(folder, 'penstock', 'sessions.json')
}

/** Returns the sign-ins, the last one first. */
export async function readSessions(env: Environment): Promise<KeptSession[]> {
  let text: string
  try {
    text = await readFile(sessionsPath(env), 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
  const kept = fileSchema.safeParse(parseJson(text))
  if (!kept.success) throw new Error(`${sessionsPath(env)} is not a file that "penstock login" has written: remove it`)
  return kept.data.sessions
}

/** Keeps a sign-in in place of the one at the same installation. */
export async function keepSession(env: Environment, session: KeptSession): Promise<void> {
  const others = (await readSessions(env)).filter(({ url }) => url !== session.url)
  await writeSessions(env, [session, ...others].slice(0, SESSIONS_MAX))
}

/** Forgets the sign-in at an installation. */
export async function forgetSession(env: Environment, url: string): Promise<void> {
  await writeSessions(
    env,
    (await readSessions(env)).filter(session => session.url !== url),
  )
}

/** Writes a file that only this user may read. It appears by rename, so that a reader sees all of it or nothing. */
async function writeSessions(env: Environment, sessions: readonly KeptSession[]): Promise<void> {
  const path = sessionsPath(env)
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  const temporary = `${path}.${process.pid}`
  await writeFile(temporary, `${JSON.stringify({ sessions }, undefined, 2)}\n`, { mode: 0o600 })
  await chmod(temporary, 0o600)
  await rename(temporary, path)
}
