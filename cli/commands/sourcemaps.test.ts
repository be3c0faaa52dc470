import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Command, CommanderError } from 'commander'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { generateKey } from '../../shared/ids/credentials.ts'
import { EXIT, EXIT_OF_BUILD } from '../exit-codes.ts'
import { addSourcemapsUpload } from './sourcemaps.ts'

let directory: string
let dist: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'penstock-cli-'))
  dist = join(directory, 'dist')
  await mkdir(dist)
  await writeFile(join(dist, 'a.js'), 'f()')
})
afterAll(() => rm(directory, { recursive: true }))

async function run(args: readonly string[], env: Record<string, string> = {}) {
  const printed: string[] = []
  let help = ''
  let code: number = EXIT.done
  const parent = new Command('sourcemaps').exitOverride()
  parent.configureOutput({ writeOut: text => (help += text), writeErr: text => printed.push(text) })
  addSourcemapsUpload(parent, {
    env: { PENSTOCK_SECRET_KEY: generateKey('secret'), PENSTOCK_URL: 'http://127.0.0.1:2', CI: '1', ...env },
    directory,
    fetch,
    stderr: Object.assign(Object.create(process.stderr), { write: (text: string) => printed.push(text), isTTY: false }),
    print: text => printed.push(text),
    printError: text => printed.push(text),
    exit: ended => (code = ended),
    onStop: () => {},
  })
  try {
    await parent.parseAsync(['upload', ...args], { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    code = error.exitCode === 0 ? EXIT.done : EXIT.usage
  }
  return { code, text: printed.join('\n'), help }
}

it.each([
  ['a version is missing', []],
  ['the version is empty', ['--version', '']],
  ['the version is too long', ['--version', 'x'.repeat(201)]],
  ['the concurrency is 0', ['--version', '1', '--concurrency', '0']],
  ['a number is not numeric', ['--version', '1', '--concurrency', 'many']],
  ['a duration is negative', ['--version', '1', '--retry-timeout=-1']],
  ['the URL has another protocol', ['--version', '1', '--url', 'ftp://x']],
  ['the prefix is empty', ['--version', '1', '--url-prefix', '']],
  ['a key is passed as an argument', ['--version', '1', '--key', generateKey('secret')]],
])('exits with 2 and does nothing when %s', async (_name, args) => {
  expect(await run([dist, ...args])).toMatchObject({ code: EXIT.usage })
})

it('exits with 2 when DIR does not exist or no service is named', async () => {
  const gone = join(directory, 'gone')
  expect(await run([gone, '--version', '1'])).toMatchObject({ code: EXIT.usage, text: `${gone} is not a directory` })
  const noService = 'name the service with --url or PENSTOCK_URL'
  expect(await run([dist, '--version', '1'], { PENSTOCK_URL: '' })).toMatchObject({ code: EXIT.usage, text: noService })
  expect(await run([dist, '--version', '1'], { PENSTOCK_URL: 'nowhere' })).toMatchObject({ code: EXIT.usage })
})

it('has a different exit code for every result, and its help lists all of them', async () => {
  const codes = Object.entries(EXIT_OF_BUILD)
  expect(new Set(codes.map(([, code]) => code)).size).toBe(codes.length)
  const { help } = await run(['--help'])
  for (const [result, code] of codes) expect(help).toMatch(new RegExp(`^ +${code} {2}${result}: `, 'm'))
})
