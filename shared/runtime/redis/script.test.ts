import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, it } from 'vitest'
import { Script, scriptFault, scriptsIn } from './script.ts'

it('reads a script with its includes and constants, without comments, once each', () => {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-scripts-'))
  const write = (name: string, ...lines: string[]) =>
    writeFileSync(join(folder, `${name}.lua`), `${lines.join('\n')}\n`)
  write(
    'main',
    '#!lua flags=allow-oom',
    '-- KEYS a.',
    '--- @include "one"',
    '--- @include "two"',
    'return one() + two()',
  )
  write('one', '-- One.', 'local function one() return SECONDS end')
  write('two', '--- @include "one"', 'local function two() return one() end')
  const { text } = scriptsIn(pathToFileURL(`${folder}/`), { SECONDS: 60 })('main')
  rmSync(folder, { recursive: true })
  expect(text.trim().split('\n')).toEqual([
    '#!lua flags=allow-oom',
    'local SECONDS = 60',
    'local function one() return SECONDS end',
    'local function two() return one() end',
    'return one() + two()',
  ])
})

it('sends the text only to a server that does not know the script, and repeats no other error', async () => {
  const sent: string[] = []
  const server = (reply: string) => ({
    async evalsha() {
      sent.push('hash')
      if (reply !== 'OK') throw new Error(reply)
      return reply
    },
    async eval() {
      sent.push('text')
      return 'OK'
    },
  })
  const script = new Script('return 1')
  expect(await script.run(server('OK'), [])).toBe('OK')
  expect(await script.run(server('NOSCRIPT No matching script.'), [])).toBe('OK')
  await expect(script.run(server('OOM command not allowed'), [])).rejects.toThrow('OOM')
  expect(sent).toEqual(['hash', 'hash', 'text', 'hash'])
})

it('names a script that a server cannot compile, and takes any other refusal to load it for no fault', async () => {
  const serverThat = (message: string) => ({
    async script(): Promise<never> {
      throw Object.assign(new Error(message), { name: 'ReplyError' })
    },
  })
  const folder = mkdtempSync(join(tmpdir(), 'penstock-scripts-'))
  writeFileSync(join(folder, 'named.lua'), 'return 1\n')
  scriptsIn(pathToFileURL(`${folder}/`))('named')
  rmSync(folder, { recursive: true })
  const fault = (message: string) => scriptFault(serverThat(message) as never)
  expect(await fault("ERR Error compiling script (new function): user_script:1: unexpected symbol near '#'")).toMatch(
    /^it cannot compile the script \w+: ERR Error compiling script/,
  )
  expect(await fault("NOPERM this user has no permissions to run the 'script|load' command")).toBeUndefined()
})
