import { readFile } from 'node:fs/promises'
import { z } from 'zod'

/** A file with rules must have this at least. The API states what is wrong with a rule. */
const fileSchema = z.looseObject({ revision: z.int().optional(), rules: z.array(z.unknown()) })

/** Reads a file with rules, as `show --json` prints it, or standard input for `-`. Throws an Error that states what is wrong. */
export async function readRulesFile(file: string): Promise<z.infer<typeof fileSchema>> {
  const text = await readFile(file === '-' ? '/dev/stdin' : file, 'utf8').catch(error => {
    throw new Error(`${file} cannot be read: ${error.code ?? error.message}`)
  })
  const json = z.preprocess(value => parsed(value), fileSchema).safeParse(text)
  if (!json.success) throw new Error(`${file} must be JSON with a list "rules", as "show --json" prints it`)
  return json.data
}

function parsed(value: unknown): unknown {
  try {
    return JSON.parse(String(value))
  } catch {
    // What is no JSON has no list of rules either.
    return undefined
  }
}
