import { execFile } from 'node:child_process'
import { copyFile, cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { MINUTE_MS } from '../../schemas/units.ts'
import type { ToolLanguage } from '../support/clients/openapi-tools.ts'
import { type ExampleWorkspace, startExampleWorkspace } from '../support/services/example-workspace.ts'
import { type Services, startServices } from '../support/services/services.ts'

const SOURCES = join(import.meta.dirname, 'openapi')
const STEP_DEADLINE_MS = 9 * MINUTE_MS
const IS_NIGHTLY = process.env.TEST_LENGTH === 'nightly'

/** Results of each tour. */
const SEEN = {
  identified: true,
  release: expect.stringMatching(/^rel_/),
  surfaces: ['Shop'],
  nextCursor: null,
  refusals: ['FINDING_NOT_FOUND', 'AUTH_MISSING'],
}

let services: Services
let workspace: ExampleWorkspace
let folder: string

beforeAll(async () => {
  services = await startServices()
  workspace = await startExampleWorkspace(services, `${services.redisUrl}/1`)
  await workspace.restore()
  folder = await mkdtemp(join(tmpdir(), 'penstock-clients-'))
  await writeFile(join(folder, 'openapi.json'), await (await fetch(`${workspace.baseUrl}/openapi.json`)).text())
})

afterAll(async () => {
  await workspace?.stop()
  await services?.stop()
  if (folder !== undefined) await rm(folder, { recursive: true })
})

describe.skipIf(isMissing('python'))('Python', () => {
  it('validates the document', async () => {
    await python(['-m', 'openapi_spec_validator', 'openapi.json'])
  })

  it('makes the tour with a client by openapi-python-client', async () => {
    const target = ['--output-path', 'penstock_client', '--meta', 'none', '--overwrite']
    await python(['-m', 'openapi_python_client', 'generate', '--path', 'openapi.json', ...target])
    expect(JSON.parse(await python([join(SOURCES, 'attrs_tour.py')]))).toEqual(SEEN)
  })

  it('makes the tour with models by datamodel-code-generator', async () => {
    const target = ['--output', 'penstock_models.py', '--output-model-type', 'pydantic_v2.BaseModel']
    const input = [
      '--input',
      'openapi.json',
      '--input-file-type',
      'openapi',
      '--formatters',
      'builtin',
      '--strict-nullable',
    ]
    await python(['-m', 'datamodel_code_generator', ...input, ...target])
    expect(JSON.parse(await python([join(SOURCES, 'pydantic_tour.py')]))).toEqual(SEEN)
  })
})

it.skipIf(isMissing('typescript'))('makes the tour with types by openapi-typescript', async () => {
  const tools = folderOf('typescript')
  const target = join(folder, 'typescript')
  await mkdir(target)
  await symlink(join(tools, 'node_modules'), join(target, 'node_modules'))
  await copyFile(join(SOURCES, 'tour.ts'), join(target, 'tour.ts'))
  await writeFile(join(target, 'package.json'), '{"type":"module"}')
  const generator = join(tools, 'node_modules/openapi-typescript/bin/cli.js')
  await run(process.execPath, [generator, '../openapi.json', '--output', 'schema.ts'], target)
  const compiler = join(tools, 'node_modules/typescript/bin/tsc')
  const strict = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2022', '--allowImportingTsExtensions']
  await run(process.execPath, [compiler, ...strict, '--lib', 'es2023,dom', 'tour.ts'], target)
  const options = ['--disable-warning=ExperimentalWarning', 'tour.ts']
  expect(JSON.parse(await run(process.execPath, options, target, settingsOf('typescript')))).toEqual(SEEN)
})

it.skipIf(isMissing('go'))('makes the tour with a client by oapi-codegen', async () => {
  const target = join(folder, 'go')
  await cp(SOURCES, target, { recursive: true })
  await mkdir(join(target, 'client'))
  const options = ['-generate', 'types,client', '-package', 'client', '-o', 'client/client.gen.go', '../openapi.json']
  await run(join(folderOf('go'), 'oapi-codegen'), options, target)
  expect(JSON.parse(await run('go', ['run', '.'], target, settingsOf('go')))).toEqual(SEEN)
})

// The last one: it changes what the tours read.
it.skipIf(isMissing('python'))(
  'responds to invented requests, valid and invalid, as the document describes',
  async () => {
    await copyFile(join(SOURCES, 'schemathesis_hooks.py'), join(folder, 'schemathesis_hooks.py'))
    await writeFile(join(folder, 'schemathesis.toml'), configuration())
    const phases = IS_NIGHTLY ? 'examples,coverage,fuzzing' : 'examples,fuzzing'
    const limits = ['--seed', '37', '--phases', phases, '--max-examples', IS_NIGHTLY ? '8' : '2']
    await python(['-m', 'schemathesis.cli', 'run', 'openapi.json', '--url', workspace.baseUrl, ...limits])
  },
  10 * MINUTE_MS,
)

/** Operations that would end the credentials of the others. */
const DELETIONS = ['deleteSurface', 'revokeSurfaceKey', 'revokeWorkspaceKey', 'removeMember', 'changeMember']

/**
 * Operations that take what their schemas exclude: optional fields that break their rule are left out, a chunk without usable
 * metadata is acknowledged, and servers of HTTP trim an Idempotency-Key.
 */
const LENIENT = [
  ...['identifySession', 'recordHeartbeat', 'uploadReplayChunk', 'createErasure', 'commentFinding', 'addMember'],
  ...['registerRelease', 'createSurface', 'createSurfaceKey', 'createWorkspaceKey'],
]

/** Returns the settings of schemathesis. */
function configuration(): string {
  const { credentials } = workspace
  const schemes = ['sessionToken', 'publicKeyHeader', 'publicKeyQuery', 'secretKey'] as const
  return [
    'hooks = "schemathesis_hooks.py"',
    '[checks]',
    'positive_data_acceptance.enabled = false',
    // A head that is too large is refused before its parts are looked at.
    'negative_data_rejection.expected-statuses = [400, 401, 403, 404, 408, 409, 413, 415, 422, 431]',
    ...schemes.flatMap(name => [
      `[auth.openapi.${name}]`,
      `${name.startsWith('public') ? 'api_key' : 'bearer'} = "${credentials[name]}"`,
    ]),
    ...DELETIONS.flatMap(id => ['[[operations]]', `include-operation-id = "${id}"`, 'enabled = false']),
    ...LENIENT.flatMap(id => [
      '[[operations]]',
      `include-operation-id = "${id}"`,
      'checks = { negative_data_rejection = { enabled = false } }',
    ]),
  ].join('\n')
}

/** Settings of a tour, which registers a version of its own. */
function settingsOf(version: string): NodeJS.ProcessEnv {
  const { credentials, baseUrl } = workspace
  return {
    INGEST_URL: baseUrl,
    API_URL: baseUrl,
    PUBLIC_KEY: credentials.publicKeyHeader,
    SECRET_KEY: credentials.secretKey,
    SESSION_TOKEN: credentials.sessionToken,
    VERSION: `1.0.0-${version}`,
  }
}

function isMissing(language: ToolLanguage): boolean {
  return 'missing' in inject('openApiTools')[language]
}

function folderOf(language: ToolLanguage): string {
  const tools = inject('openApiTools')[language]
  if ('missing' in tools) throw new Error(`no tools for ${language}: ${tools.missing}`)
  return tools.folder
}

function python(args: readonly string[]): Promise<string> {
  const settings = { ...settingsOf('python'), PYTHONPATH: `${folder}:${folderOf('python')}` }
  return run('python3', args, folder, settings)
}

async function run(
  command: string,
  args: readonly string[],
  cwd: string,
  more: NodeJS.ProcessEnv = {},
): Promise<string> {
  const env = { PATH: process.env.PATH, HOME: process.env.HOME, ...more }
  const options = { cwd, env, timeout: STEP_DEADLINE_MS, maxBuffer: 64 * 1024 * 1024 }
  try {
    return (await promisify(execFile)(command, args, options)).stdout
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string }
    throw new Error(
      `${command} ${args.slice(0, 3).join(' ')} failed:\n${stdout.slice(-8_000)}\n${stderr.slice(-8_000)}`,
    )
  }
}
