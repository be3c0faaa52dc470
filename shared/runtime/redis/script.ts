import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Redis } from 'ioredis'

/** An argument of a script. */
export type ScriptArgument = string | number | Buffer

/** A Lua script, which Redis runs as one step. It names every key that it uses in KEYS. */
export class Script {
  readonly text: string
  readonly sha1: string

  constructor(text: string) {
    this.text = text
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

/** Returns a reader of the scripts in a folder. `constants` are local variables of all of them. */
export function scriptsIn(folder: URL, constants: Readonly<Record<string, number>> = {}): (name: string) => Script {
  const variables = Object.entries(constants).map(([name, value]) => `local ${name} = ${value}\n`)
  return name => {
    const text = withIncludes(folder, name, new Set())
    const begin = text.startsWith('#!') ? text.indexOf('\n') + 1 : 0
    const whole = text.slice(0, begin) + variables.join('') + text.slice(begin)
    // Without comments, because some scripts are sent with their text each time.
    return new Script(whole.replaceAll(/^ *--.*\n/gm, ''))
  }
}

/** Returns the text of a file, with that of another file in place of each line `--- @include "other"`, once for each file. */
function withIncludes(folder: URL, name: string, included: Set<string>): string {
  if (included.has(name)) return ''
  included.add(name)
  const text = readFileSync(new URL(`${name}.lua`, folder), 'utf8')
  return text.replaceAll(/^--- @include "(.+)"\n/gm, (_, other: string) => withIncludes(folder, other, included))
}
