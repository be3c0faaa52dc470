import { execFile } from 'node:child_process'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { promisify } from 'node:util'
import { afterEach, describe, expect, it } from 'vitest'
import { podOf } from './find-manifests.ts'
import { CHART, findHelm, KUBERNETES_VERSION, NO_HELM, parseManifests } from './render.ts'

const helm = findHelm()
if (helm === undefined) console.warn(NO_HELM)

const secretKind = { name: 'secrets', singularName: 'secret', namespaced: true, kind: 'Secret', verbs: ['get'] }
const ANSWERS: Readonly<Record<string, unknown>> = {
  '/version': { major: '1', minor: '36', gitVersion: 'v1.36.3' },
  '/api': { kind: 'APIVersions', versions: ['v1'] },
  '/apis': { kind: 'APIGroupList', apiVersion: 'v1', groups: [] },
  '/api/v1': { kind: 'APIResourceList', groupVersion: 'v1', resources: [secretKind] },
}

/** The part of an API server that Helm asks for a Secret. */
const server = createServer((request, response) => {
  const path = (request.url ?? '').split('?', 1)[0] ?? ''
  const secret = /^\/api\/v1\/namespaces\/telemetry\/secrets\/(\w+)$/.exec(path)?.[1]
  const data = secrets[secret ?? '']
  const found = data && { apiVersion: 'v1', kind: 'Secret', metadata: { name: secret, namespace: 'telemetry' }, data }
  const answer = found ?? ANSWERS[path]
  response.writeHead(answer === undefined ? 404 : 200, { 'content-type': 'application/json' })
  response.end(
    JSON.stringify(answer ?? { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'NotFound', code: 404 }),
  )
})
let secrets: Record<string, Record<string, string>> = {}

afterEach(() => new Promise<void>(resolve => server.close(() => resolve())))

describe.runIf(helm !== undefined)('a Secret that changes', () => {
  it('replaces the pods of the processes whose settings have changed in it, and no others', async () => {
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const checksums = async () => {
      const cluster = [
        ...['--dry-run=server', '--kube-version', KUBERNETES_VERSION],
        '--kube-apiserver',
        address,
        '--kube-token',
        'test',
        '--namespace',
        'telemetry',
      ]
      const values = ['secrets.existingSecret=stores', 'secrets.from.KEY_PEPPER.name=pepper']
      const args = ['template', 'penstock', CHART, ...cluster, ...values.flatMap(value => ['--set', value])]
      const env = { ...process.env, KUBECONFIG: '/dev/null' }
      const { stdout } = await promisify(execFile)(helm ?? '', args, { env, maxBuffer: 64 * 1024 * 1024 })
      const manifests = parseManifests(stdout)
      return Object.fromEntries(
        ['edge', 'api', 'workers-traces', 'toolbox'].map(component => [
          component,
          podOf(manifests, component).metadata.annotations?.['checksum/secrets'],
        ]),
      )
    }

    expect(Object.values(await checksums())).toEqual([undefined, undefined, undefined, undefined])
    secrets = {
      stores: { REDIS_URL: 'YQ==', CLICKHOUSE_PASSWORD: 'YQ==', UNUSED: 'YQ==' },
      pepper: { KEY_PEPPER: 'YQ==' },
    }
    const first = await checksums()
    expect(Object.values(first).every(checksum => /^[0-9a-f]{64}$/.test(checksum))).toBe(true)

    secrets = { ...secrets, stores: { REDIS_URL: 'YQ==', CLICKHOUSE_PASSWORD: 'Yg==', UNUSED: 'Yg==' } }
    const second = await checksums()
    const changed = (before: typeof first, after: typeof first) =>
      Object.keys(after).filter(name => before[name] !== after[name])
    expect(changed(first, second)).toEqual(['api', 'workers-traces', 'toolbox'])

    secrets = { ...secrets, pepper: { KEY_PEPPER: 'Yg==' } }
    expect(changed(second, await checksums())).toEqual(['api', 'toolbox'])
  })
})

it.skipIf(helm !== undefined)(`(${NO_HELM})`, context => context.skip())
