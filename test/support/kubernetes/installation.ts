import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { copyFile, cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { CHART } from '../../../deploy/kubernetes/render.ts'
import { until } from '../until.ts'
import { buildImage, type Cluster } from './cluster.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const HERE = fileURLToPath(new URL('.', import.meta.url))
/** Namespace of the product, with the restricted Pod Security Standard, and that of its stores and clients. */
export const NAMESPACE = 'penstock-test'
const STORES = 'penstock-test-stores'
const PRODUCT_IMAGE = 'penstock-cluster-test'
const STORES_IMAGE = 'penstock-cluster-test-stores'
const TAG = 'v1'

/** What a client did, as it knows it (load.mjs). */
export interface LoadReport {
  readonly sent: number
  /** Exports left out because too many were in progress. */
  readonly skipped: number
  readonly statuses: Readonly<Record<string, number>>
  readonly errors: Readonly<Record<string, number>>
  /** Numbers of the exports that were not acknowledged. */
  readonly unconfirmed: readonly number[]
  /** Results of the first of them, with the second in which they were sent. */
  readonly failures: readonly string[]
  readonly maxMs: number
}

/** A client in the cluster that sends until its phases are over or it is ended. */
export interface Load {
  readonly run: string
  readonly spans: number
  /** Ends it, or with `wait` lets it finish, and returns its report. */
  finish(options?: { readonly wait: boolean }): Promise<LoadReport>
}

/** A release of the chart with its stores. */
export interface Installation {
  /** Installs the chart, or upgrades it, and waits until all of it is ready. */
  upgrade(...values: string[]): Promise<void>
  /** Runs a command in the toolbox, and returns its output. */
  inToolbox(...command: string[]): Promise<string>
  startLoad(spans: number, phases: readonly (readonly [seconds: number, perSecond: number])[]): Promise<Load>
  /** Returns the rows of a query of ClickHouse. */
  query<T>(sql: string): Promise<T[]>
  /** Returns `/queues` of an edge. */
  queues(): Promise<Record<string, { ageSeconds: number; requests: number; costBytes: number; busyWorkers: number }>>
}

/** Builds the images of this checkout and makes them known to the cluster. Other clusters take them from KUBERNETES_IMAGES. */
async function provideImages(cluster: Cluster): Promise<{ product: string; stores: string }> {
  const registry = process.env.KUBERNETES_IMAGES
  const prefix = registry ? `${registry}/` : ''
  const images = { product: `${prefix}${PRODUCT_IMAGE}`, stores: `${prefix}${STORES_IMAGE}:${TAG}` }
  if (!cluster.isOwn) return images
  await buildStores(images.stores)
  await buildImage(`${images.product}:${TAG}`, `${ROOT}deploy/docker/Dockerfile`, ROOT)
  await cluster.load(images.stores, `${images.product}:${TAG}`)
  return images
}

async function buildStores(image: string): Promise<void> {
  const { optionalDependencies } = JSON.parse(await readFile(`${ROOT}package.json`, 'utf8'))
  const packages = ['chdb', 'ffi-rs', 'miniflare'].map(name => `${name}@${optionalDependencies[name]}`).join(' ')
  const context = await mkdtemp(join(tmpdir(), 'penstock-stores-'))
  try {
    for (const file of [
      'local/stores/clickhouse-server.mjs',
      'local/stores/s3-server.mjs',
      'clickhouse/forget-lost-parts.sh',
    ]) {
      await copyFile(`${ROOT}deploy/${file}`, join(context, basename(file)))
    }
    await buildImage(image, `${HERE}stores.Dockerfile`, context, '--build-arg', `PACKAGES=${packages}`)
  } finally {
    await rm(context, { recursive: true })
  }
}

/** Creates namespaces, stores and secrets in the cluster, and installs the chart with a workspace. */
export async function install(cluster: Cluster): Promise<Installation> {
  const { kubectl, kubectlWith } = cluster
  const images = await provideImages(cluster)
  await removeInstallation(cluster)
  for (const namespace of [NAMESPACE, STORES]) await kubectl('create', 'namespace', namespace)
  await kubectl('label', 'namespace', NAMESPACE, 'pod-security.kubernetes.io/enforce=restricted')
  const stores = (await readFile(`${HERE}stores.yaml`, 'utf8'))
    .replaceAll('STORES_IMAGE', images.stores)
    .replaceAll('STORES_NAMESPACE', STORES)
  await kubectlWith(stores, '-n', STORES, 'apply')
  await kubectl('-n', STORES, 'create', 'configmap', 'load', `--from-file=${HERE}load.mjs`)
  await kubectl('-n', NAMESPACE, 'create', 'secret', 'generic', 'stores', ...secretLiterals())
  await kubectl('-n', STORES, 'rollout', 'status', 'deployment', '--timeout=180s')

  const values = [`image.repository=${images.product}`, `image.tag=${TAG}`]
  const chart = await chartFor(cluster)
  const upgrade = async (...more: string[]) => {
    const set = [...values, ...more].flatMap(value => ['--set', value])
    const where = ['-n', NAMESPACE, '-f', `${HERE}values.yaml`]
    await cluster.helm('upgrade', '--install', 'penstock', chart, ...where, ...set, '--wait', '--timeout', '10m')
  }
  await upgrade()
  const inToolbox = (...command: string[]) =>
    kubectl('-n', NAMESPACE, 'exec', 'deploy/penstock-toolbox', '--', ...command)
  const penstock = (...args: string[]) => inToolbox('penstock', ...args)
  await penstock('workspace', 'create', '--slug', 'test', '--name', 'Test')
  const surface = JSON.parse(await penstock('surface', 'create', '--workspace', 'test', '--name', 'Test', '--json')).id
  const key = await penstock('key', 'create', '--workspace', 'test', '--surface', surface, '--kind', 'public')

  const inNode = async (script: string) => {
    const output = await kubectl('-n', STORES, 'exec', 'deploy/s3', '--', 'node', '-e', script)
    return output
  }
  return {
    upgrade,
    inToolbox,
    async startLoad(spans, phases) {
      const run = randomBytes(8).toString('hex')
      const name = `load-${run}`
      const load = { url: `http://penstock-edge.${NAMESPACE}:4318`, key, run, spans, phases }
      await kubectlWith(loadPod(name, `${images.product}:${TAG}`, JSON.stringify(load)), '-n', STORES, 'apply')
      await until(
        'the client has started',
        async () => (await kubectl('-n', STORES, 'logs', name).catch(() => '')).includes('started'),
        { deadlineMs: 60_000, everyMs: 500 },
      )
      return {
        run,
        spans,
        async finish({ wait } = { wait: false }) {
          if (!wait) await kubectl('-n', STORES, 'exec', name, '--', 'node', '-e', 'process.kill(1, "SIGTERM")')
          await kubectl(
            '-n',
            STORES,
            'wait',
            `pod/${name}`,
            '--for=jsonpath={.status.phase}=Succeeded',
            '--timeout=900s',
          )
          const lines = (await kubectl('-n', STORES, 'logs', name)).split('\n')
          await kubectl('-n', STORES, 'delete', 'pod', name, '--wait=false')
          return JSON.parse(lines.at(-1) ?? '') as LoadReport
        },
      }
    },
    async query<T>(sql: string) {
      const script = `fetch('http://clickhouse:8123/?database=penstock&default_format=JSONEachRow', { method: 'POST',
        headers: { 'x-clickhouse-user': 'penstock', 'x-clickhouse-key': 'test' }, body: ${JSON.stringify(sql)} })
        .then(async response => { const text = await response.text(); if (!response.ok) throw new Error(text); console.log(text) })`
      return (await inNode(script))
        .split('\n')
        .filter(Boolean)
        .map(line => JSON.parse(line) as T)
    },
    async queues() {
      return JSON.parse(
        await inNode(
          `fetch('http://penstock-edge-admin.${NAMESPACE}:4319/queues').then(async r => console.log(await r.text()))`,
        ),
      )
    },
  }
}

/**
 * Returns the folder of the chart. An API server that was built without its version reports one that Helm cannot compare with
 * `kubeVersion`, so it gets a copy of the chart without this line.
 */
async function chartFor({ kubectl }: Cluster): Promise<string> {
  const { gitVersion } = JSON.parse(await kubectl('get', '--raw', '/version'))
  if (!String(gitVersion).startsWith('v0.0.0-')) return CHART
  const dir = await mkdtemp(join(tmpdir(), 'penstock-chart-'))
  process.once('exit', () => rmSync(dir, { recursive: true }))
  const copy = join(dir, 'penstock')
  await cp(CHART, copy, { recursive: true })
  const file = join(copy, 'Chart.yaml')
  await writeFile(file, (await readFile(file, 'utf8')).replace(/^kubeVersion:.*$/m, ''))
  return copy
}

/** Removes what an earlier run has left. */
export async function removeInstallation({ kubectl }: Cluster): Promise<void> {
  await kubectl('delete', 'namespace', NAMESPACE, STORES, '--ignore-not-found', '--timeout=180s')
}

function secretLiterals(): string[] {
  const { publicKey } = generateKeyPairSync('ed25519')
  const secrets = {
    REDIS_URL: `redis://:test@redis.${STORES}:6379`,
    DIRECTORY_REDIS_URL: `redis://:test@directory.${STORES}:6379`,
    CLICKHOUSE_PASSWORD: 'test',
    AWS_ACCESS_KEY_ID: 'test-access',
    AWS_SECRET_ACCESS_KEY: 'test-secret',
    KEY_PEPPER: randomBytes(32).toString('base64'),
    DIRECTORY_BACKUP_KEY: randomBytes(32).toString('base64'),
    AUTH_PUBLIC_KEY: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
  }
  return Object.entries(secrets).map(([name, value]) => `--from-literal=${name}=${value}`)
}

function loadPod(name: string, image: string, load: string): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      restartPolicy: 'Never',
      containers: [
        {
          name: 'load',
          image,
          command: ['node', '/load/load.mjs'],
          env: [{ name: 'LOAD', value: load }],
          resources: { requests: { cpu: '100m', memory: '64Mi' } },
          volumeMounts: [{ name: 'load', mountPath: '/load' }],
        },
      ],
      volumes: [{ name: 'load', configMap: { name: 'load' } }],
    },
  })
}
