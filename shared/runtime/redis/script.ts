import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Redis } from 'ioredis'

/** An argument of a script. */
export type ScriptArgument = string | number | Buffer

/** A Lua script, which Redis runs as one step. It names every key that it uses in KEYS. */
export class Script {
  readonly text: string
  /** Name of its file, for messages. */
  readonly name: string
  readonly sha1: string

  constructor(text: string, name = '') {
    this.text = text
    this.name = name
    this.sha1 = createHash('sha1').update(text).digest('hex')
  }

  /** Runs the script by its hash, and once more with its text if the server does not know it: it has not run then. */
  async run(
    redis: Pick<Redis, 'evalsha' | 'eval'>,
    keys: readonly string[],
    args: readonly ScriptArgument[] = [],
  ): Promise<unknown> {
    try {
      return await redis.evalsha(this.sha1, keys.length, ...keys, ...args)
    } catch (error) {
      if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error
      return redis.eval(this.text, keys.length, ...keys, ...args)
    }
  }
}

/** The scripts of this process that are read from files. */
const known = new Set<Script>()

/**
 * Returns why the server cannot compile a script of this process, or undefined. The server knows all of them afterwards. A server
 * that does not allow to load scripts is not at fault: it may run them.
 */
export async function scriptFault(redis: Pick<Redis, 'script'>): Promise<string | undefined> {
  const faults = await Promise.all([...known].map(script => faultOf(redis, script)))
  return faults.find(fault => fault !== undefined)
}

async function faultOf(redis: Pick<Redis, 'script'>, { text, name }: Script): Promise<string | undefined> {
  try {
    await redis.script('LOAD', text)
    return undefined
  } catch (error) {
    if (!(error instanceof Error && error.name === 'ReplyError')) throw error
    return /compil/i.test(error.message) ? `it cannot compile the script ${name}: ${error.message}` : undefined
  }
}

/** Returns a reader of the scripts in a folder. `constants` are local variables of all of them. */
export function scriptsIn(folder: URL, constants: Readonly<Record<string, number>> = {}): (name: string) => Script {
  const variables = Object.entries(constants).map(([name, value]) => `local ${name} = ${value}\n`)
  return name => {
    const text = withIncludes(folder, name, new Set())
    const begin = text.startsWith('#!') ? text.indexOf('\n') + 1 : 0
    const whole = text.slice(0, begin) + variables.join('') + text.slice(begin)
    // Without comments, because some scripts are sent with their text each time.
    const script = new Script(whole.replaceAll(/^ *--.*\n/gm, ''), name)
    known.add(script)
    return script
  }
}

/** Returns the text of a file, with that of another file in place of each line `--- @include "other"`, once for each file. */
function withIncludes(folder: URL, name: string, included: Set<string>): string {
  if (included.has(name)) return ''
  included.add(name)
  const text = readFileSync(new URL(`${name}.lua`, folder), 'utf8')
  return text.replaceAll(/^--- @include "(.+)"\n/gm, (_, other: string) => withIncludes(folder, other, included))
}
