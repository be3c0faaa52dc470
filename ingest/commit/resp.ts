/** Commands in RESP, the protocol of Redis, as text. A word is a string or a number. */

/** A word of a command. */
type Word = string | number

/** Returns a word as RESP has it. */
function respWord(word: Word): string {
  const text = String(word)
  return `$${Buffer.byteLength(text)}\r\n${text}\r\n`
}

/** Returns a command. */
export function respCommand(...words: readonly Word[]): string {
  let resp = `*${words.length}\r\n`
  for (const word of words) resp += respWord(word)
  return resp
}

/** Returns the beginning of a command, up to its last word: a value of this size, which CRLF follows. */
export function respCommandBefore(valueBytes: number, ...words: readonly Word[]): string {
  let resp = `*${words.length + 1}\r\n`
  for (const word of words) resp += respWord(word)
  return `${resp}$${valueBytes}\r\n`
}

/** Returns the beginning of a command that runs the text of a script. */
export function respEval(lua: string): string {
  return respWord('EVAL') + respWord(lua)
}

/** Returns the beginning of a command that runs a script which the server knows by this SHA-1. */
export function respEvalSha(sha1: string): string {
  return respWord('EVALSHA') + respWord(sha1)
}

/** Returns a command that runs a script. `script` is its beginning, which is made once for each script. */
export function respScript(script: string, keys: readonly string[], args: readonly Word[]): string {
  let resp = `*${3 + keys.length + args.length}\r\n${script}${respWord(keys.length)}`
  for (const key of keys) resp += respWord(key)
  for (const arg of args) resp += respWord(arg)
  return resp
}
