import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import { load } from 'js-yaml'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { releaseAnswerSchema, releasesPageSchema } from '../../schemas/http/releases/schemas.ts'
import { generateKey } from '../../shared/ids/credentials.ts'
import { writeApp } from '../support/bundlers/write-app.ts'
import { packPackage } from '../support/pack-package.ts'
import { type Stack, startStack } from '../support/services/stack.ts'

/** The parts of action.yml by which GitHub runs it. */
interface Action {
  readonly inputs: Readonly<Record<string, { readonly required?: boolean; readonly default?: string }>>
  readonly runs: {
    readonly using: string
    readonly steps: readonly {
      readonly shell: string
      readonly env: Readonly<Record<string, string>>
      readonly run: string
    }[]
  }
}

type Inputs = Readonly<Record<string, string>>

const COMMIT = 'f'.repeat(40)
const run = promisify(execFile)

let root: string
let tarball: string
let stack: Stack
let action: Action

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'penstock-action-'))
  action = load(await readFile(new URL('../../packages/build/action.yml', import.meta.url), 'utf8')) as Action
  ;[stack, tarball] = await Promise.all([startStack(), packPackage('build', root), writeApp(join(root, 'app'), 3)])
})
afterAll(async () => {
  await stack?.stop()
  await rm(root, { recursive: true, force: true })
})

describe('the action for GitHub', () => {
  it('stores the maps of a directory under the commit, and removes them', async () => {
    const workspace = await checkout('plain', 'dist')
    const ended = await runAction(workspace, { directory: 'dist' })
    expect(ended).toMatchObject({ code: 0, output: expect.stringContaining('1 source map: 1 sent') })
    expect(await readdir(join(workspace, 'dist'))).toEqual(['main.js'])
    const { commit, manifest } = await releaseOf(COMMIT)
    expect(commit).toBe(COMMIT)
    expect(manifest?.files).toMatchObject([{ path: 'main.js.map', chunkUrl: '~/main.js' }])
  })

  it('takes a version and the start of URLs, and keeps the maps if that is wanted', async () => {
    const workspace = await checkout('kept', 'dist')
    const inputs = { directory: 'dist', version: '1.4.2', 'url-prefix': 'https://cdn.example/', 'keep-maps': 'true' }
    expect(await runAction(workspace, inputs)).toMatchObject({ code: 0 })
    expect(await readdir(join(workspace, 'dist'))).toEqual(['main.js', 'main.js.map'])
    const { manifest } = await releaseOf('1.4.2')
    expect(manifest?.files).toMatchObject([{ chunkUrl: 'https://cdn.example/main.js' }])
  })

  it('runs nothing that its inputs contain', async () => {
    const attack = '$(touch run) `touch run`; touch run & "\'; touch run #'
    const workspace = await checkout('attacked', attack)
    const version = `1 ${attack}`
    const ended = await runAction(workspace, {
      directory: attack,
      version,
      'url-prefix': `~/${attack}`,
      'keep-maps': attack,
    })
    expect(ended).toMatchObject({ code: 0 })
    expect(await readdir(workspace)).toEqual([attack])
    expect(await readdir(join(workspace, attack))).toEqual(['main.js'])
    const { manifest } = await releaseOf(version)
    expect(manifest?.files).toMatchObject([{ chunkUrl: `~/${attack}/main.js` }])
  })

  it('fails if the maps are not stored, and prints nothing of the key', async () => {
    const workspace = await checkout('failing', 'dist')
    const key = generateKey('secret')
    const ended = await runAction(workspace, { directory: 'dist', key })
    expect(ended).toMatchObject({ code: 1, output: expect.stringContaining('(api_key_rejected)') })
    expect(ended.output).not.toContain(key.slice(3))
    expect(await readdir(join(workspace, 'dist'))).toEqual(['main.js', 'main.js.map'])
  })
})

/** Makes a directory as a job has it, with a bundle and its map. */
async function checkout(name: string, directory: string): Promise<string> {
  const workspace = join(root, name)
  await mkdir(workspace)
  const outfile = join(workspace, directory, 'main.js')
  await build({ entryPoints: [join(root, 'app/src/main.js')], outfile, bundle: true, sourcemap: 'external' })
  return workspace
}

/** Runs the step of the action as GitHub does: with these inputs, its defaults, and the package of this tree. */
async function runAction(
  workspace: string,
  given: Inputs,
): Promise<{ readonly code: number; readonly output: string }> {
  expect(action.runs.using).toBe('composite')
  const [step, ...more] = action.runs.steps
  if (step === undefined || more.length > 0) throw new Error('the action has not one step')
  expect(step.shell).toBe('bash')
  const inputs: Inputs = { url: stack.ingestUrl, key: stack.secrets.secretKey, ...given }
  for (const name of Object.keys(inputs)) expect(Object.keys(action.inputs)).toContain(name)
  // GitHub replaces an expression by its value, which is not read for expressions again.
  const evaluate = (text: string): string =>
    text.replaceAll(/\$\{\{ (.+?) \}\}/g, (_, expression: string) => {
      if (expression === 'github.sha') return COMMIT
      const name = /^inputs\.([\w-]+)$/.exec(expression)?.[1] ?? ''
      const value = inputs[name] ?? evaluate(action.inputs[name]?.default ?? '')
      if (value === '') throw new Error(`the action has no value for ${expression}`)
      return value
    })
  const declared = Object.entries(step.env).map(([name, text]) => [name, evaluate(text)])
  const env = { ...process.env, GITHUB_SHA: COMMIT, ...Object.fromEntries(declared), PACKAGE: tarball }
  const script = evaluate(step.run)
  expect(script).toBe(step.run)
  const options = ['--noprofile', '--norc', '-e', '-o', 'pipefail', '-c']
  try {
    const { stdout, stderr } = await run('bash', [...options, script], { cwd: workspace, env, timeout: 60_000 })
    return { code: 0, output: stdout + stderr }
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string }
    return { code, output: stdout + stderr }
  }
}

async function releaseOf(version: string) {
  const { releases } = releasesPageSchema.parse(await read('/v3/releases'))
  const slug = releases.find(release => release.version === version)?.slug
  return releaseAnswerSchema.parse(await read(`/v3/releases/${slug}`)).release
}

async function read(path: string): Promise<unknown> {
  const answer = await fetch(stack.apiUrl + path, {
    headers: { authorization: `Bearer ${stack.secrets.sessionToken}` },
    signal: AbortSignal.timeout(10_000),
  })
  expect(answer.status).toBe(200)
  return answer.json()
}
