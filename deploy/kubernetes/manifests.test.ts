import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv } from 'ajv'
import { load } from 'js-yaml'
import { describe, expect, it } from 'vitest'
import { MANIFEST } from '../release/manifest.ts'
import { CHART, findHelm, type Manifest, NO_HELM, render } from './render.ts'
import { chartSettings, OWN_SETTINGS } from './write-settings.ts'

const helm = findHelm()
if (helm === undefined) console.warn(NO_HELM)

const SECRET = ['--set', 'secrets.existingSecret=stores']
const ROUTE = ['--set', 'httpRoute.enabled=true', '--set', 'httpRoute.parentRefs[0].name=gateway']
const COMBINATIONS: Readonly<Record<string, readonly string[]>> = {
  'the defaults': SECRET,
  'values-small.yaml': [...SECRET, '-f', join(CHART, 'values-small.yaml')],
  'values-large.yaml': [...SECRET, '-f', join(CHART, 'values-large.yaml')],
  'every option': [
    ...SECRET,
    ...[
      ...['monitoring.podMonitors.enabled=true', 'monitoring.rules.enabled=true', 'monitoring.dashboards.enabled=true'],
      ...['api.autoscaling.enabled=true', 'migrate.force=true', 'priorityClassName=high', 'backup.schedule=@daily'],
      ...['httpRoute.enabled=true', 'httpRoute.parentRefs[0].name=gateway', 'httpRoute.hostnames[0]=a.example'],
      ...[
        'ingress.enabled=true',
        'ingress.className=nginx',
        'ingress.edgeHost=in.example',
        'ingress.apiHost=a.example',
      ],
      ...['ingress.tls[0].secretName=tls', 'ingress.annotations.a=b', 'ingress.grpcAnnotations.protocol=GRPC'],
      ...[
        'image.pullSecrets[0]=registry',
        'secrets.from.KEY_PEPPER.name=other',
        'edge.settings.QUEUE_MAX_COST=8589934592',
      ],
      ...['extraEnv[0].name=NODE_EXTRA_CA_CERTS', 'extraEnv[0].value=/ca', 'podAnnotations.a=b', 'podLabels.a=b'],
      ...['serviceAccount.annotations.role=r', 'networkPolicies.redis.peers[0].ipBlock.cidr=10.0.0.0/8'],
      ...[
        'networkPolicies.extraEgress[0].to[0].ipBlock.cidr=169.254.170.23/32',
        'settings.CONSOLE_ISSUER=https://id.example',
      ],
      ...['nodeSelector.pool=telemetry', 'tolerations[0].key=telemetry', 'edge.service.type=LoadBalancer'],
      ...['trafficDistribution=PreferClose', 'envFrom[0].configMapRef.name=more', 'podSecurityContext.fsGroup=2000'],
    ].flatMap(value => ['--set', value]),
    ...[
      '--set-json',
      `extraObjects=[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"{{ .Release.Name }}-a"}}]`,
    ],
  ],
  'without autoscaling': [
    ...SECRET,
    ...['--set', 'edge.autoscaling.enabled=false', '--set', 'workers.autoscaling.enabled=false'],
  ],
  'paused workers': [...SECRET, '--set', 'workers.paused=true'],
}

function validatorOf(): (manifest: Manifest) => string[] {
  const { definitions, kinds } = JSON.parse(readFileSync(new URL('schemas/kinds.json', import.meta.url), 'utf8'))
  const ajv = new Ajv({ strict: false, allErrors: true })
  const compiled = new Map<string, ReturnType<typeof ajv.compile>>()
  return manifest => {
    const kind = `${manifest.apiVersion} ${manifest.kind}`
    if (!(kind in kinds)) return [`there is no schema of ${kind}: deploy/kubernetes/schemas/write-kinds.ts`]
    const validate = compiled.get(kind) ?? ajv.compile({ ...kinds[kind], definitions })
    compiled.set(kind, validate)
    validate(manifest)
    return (validate.errors ?? []).map(
      ({ instancePath, message, params }) =>
        `${kind} ${manifest.metadata.name}${instancePath} ${message} ${JSON.stringify(params)}`,
    )
  }
}

const podsOf = (manifests: readonly Manifest[]) => [
  ...manifests.filter(({ kind }) => kind === 'Deployment' || kind === 'Job').map(({ spec }) => spec.template),
  ...manifests.filter(({ kind }) => kind === 'CronJob').map(({ spec }) => spec.jobTemplate.spec.template),
]
/** Returns the process whose settings a pod has. */
const processOf = ({ metadata }: { metadata: { labels: Record<string, string> } }) =>
  (metadata.labels['app.kubernetes.io/component'] ?? '').replace(/^workers-.*/, 'workers').replace('backup', 'toolbox')

describe.runIf(helm !== undefined)('the chart', () => {
  const manifestsOf = (args: readonly string[]) => render(helm ?? '', args)
  const refusal = (...values: string[]) => {
    try {
      manifestsOf([...SECRET, ...values.flatMap(value => ['--set', value])])
      return 'accepted'
    } catch (error) {
      return String(error)
    }
  }

  for (const [name, args] of Object.entries(COMBINATIONS)) {
    describe(name, () => {
      // The body runs where Helm is missing too, to collect the tests that are skipped.
      const manifests = helm === undefined ? [] : manifestsOf(args)

      it('renders objects that Kubernetes, KEDA, the Prometheus operator and the Gateway API know', () => {
        expect(manifests.flatMap(validatorOf())).toEqual([])
      })

      it('has only pods that conform to the restricted standard, with bounded memory and a read-only root', () => {
        for (const { spec } of podsOf(manifests)) {
          expect(spec.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } })
          expect(spec.automountServiceAccountToken).toBe(false)
          expect(spec.volumes.every((volume: object) => 'emptyDir' in volume)).toBe(true)
          for (const container of spec.containers) {
            expect(container.securityContext).toEqual({
              allowPrivilegeEscalation: false,
              readOnlyRootFilesystem: true,
              capabilities: { drop: ['ALL'] },
            })
            expect(container.resources.requests).toMatchObject({ cpu: expect.anything(), memory: expect.anything() })
            expect(container.resources.limits.memory).toBeDefined()
          }
        }
      })

      it('gives each process only settings that it has, and no secret as text', () => {
        const { settings } = chartSettings()
        for (const pod of podsOf(manifests)) {
          const [container] = pod.spec.containers
          const names = [...settings[processOf(pod) as keyof typeof settings], ...OWN_SETTINGS]
          for (const { name, value } of container.env) {
            expect([...names, 'NODE_OPTIONS', 'NODE_EXTRA_CA_CERTS']).toContain(name)
            if (/PASSWORD|SECRET|PEPPER|BACKUP_KEY|REDIS_URL/.test(name)) expect(value, name).toBeUndefined()
          }
        }
      })

      it('lets a pod live for as long as its process may need to stop', () => {
        for (const { spec } of podsOf(manifests)) {
          const secondsOf = (setting: string) =>
            Number(spec.containers[0].env.find(({ name }: { name: string }) => name === setting)?.value ?? 0) / 1_000
          expect(spec.terminationGracePeriodSeconds ?? 30).toBeGreaterThan(secondsOf('SHUTDOWN_DEADLINE_MS'))
          // Half of the deadline is for the requests in flight afterwards (shared/http/serve.ts).
          expect(secondsOf('DRAIN_DELAY_MS')).toBeLessThanOrEqual(secondsOf('SHUTDOWN_DEADLINE_MS') / 2)
        }
      })

      it('has a disruption budget and a network policy for every process, which select its pods and no others', () => {
        const deployments = manifests.filter(
          ({ kind, metadata }) => kind === 'Deployment' && metadata.name !== 'penstock-toolbox',
        )
        const selects = (labels: Record<string, string>, { spec }: Manifest) =>
          Object.entries(labels).every(([label, value]) => spec.template.metadata.labels[label] === value)
        for (const kind of ['PodDisruptionBudget', 'NetworkPolicy']) {
          const found = manifests.filter(manifest => manifest.kind === kind)
          const selected = found.flatMap(({ spec }) =>
            deployments.filter(each => selects((spec.selector ?? spec.podSelector).matchLabels, each)),
          )
          expect(selected.map(({ metadata }) => metadata.name).sort(), kind).toEqual(
            deployments.map(({ metadata }) => metadata.name).sort(),
          )
        }
      })

      it('scales each pool by age and depth of its own queues, and by how busy its workers are', () => {
        const scaled = manifests.filter(({ kind }) => kind === 'ScaledObject')
        for (const { spec } of scaled) {
          const deployment = manifests.find(
            ({ kind, metadata }) => kind === 'Deployment' && metadata.name === spec.scaleTargetRef.name,
          )
          expect(deployment?.spec.replicas).toBeUndefined()
          const queues: string[] = deployment?.spec.template.spec.containers[0].args[2].split(',')
          const places = spec.triggers.map(
            ({ metadata }: { metadata: { valueLocation: string } }) => metadata.valueLocation,
          )
          expect(places).toEqual([
            ...queues.flatMap(queue => [`${queue}.ageSeconds`, `${queue}.costBytes`]),
            `${queues[0]}.busyWorkers`,
          ])
        }
        const pools = manifests.filter(
          ({ kind, metadata }) => kind === 'Deployment' && metadata.name.includes('workers'),
        )
        expect(scaled).toHaveLength(name === 'without autoscaling' || name === 'paused workers' ? 0 : pools.length)
      })
    })
  }

  it('takes the image from another registry, by tag or digest', () => {
    const imageOf = (...values: string[]) =>
      podsOf(manifestsOf([...SECRET, ...values.flatMap(value => ['--set', value])]))[0].spec.containers[0].image
    expect(imageOf()).toBe(`penstock:${MANIFEST.version}`)
    expect(imageOf('imageRegistry=r.example/team', 'image.tag=v7')).toBe('r.example/team/penstock:v7')
    expect(imageOf('imageRegistry=r.example', 'image.repository=ghcr.io/acme/penstock')).toBe(
      `r.example/acme/penstock:${MANIFEST.version}`,
    )
    const digest = `sha256:${'0'.repeat(64)}`
    expect(imageOf(`image.digest=${digest}`)).toBe(`penstock@${digest}`)
  })

  it('writes large numbers without an exponent', () => {
    const [edge] = manifestsOf([...SECRET, '--set', 'edge.settings.QUEUE_MAX_COST=8589934592']).filter(
      ({ kind, metadata }) => kind === 'Deployment' && metadata.name === 'penstock-edge',
    )
    expect(edge?.spec.template.spec.containers[0].env).toContainEqual({ name: 'QUEUE_MAX_COST', value: '8589934592' })
  })

  it('refuses names and queues that do not exist, and queues without a pool or with two', () => {
    expect(refusal('edge.settings.QUEUE_MAX_COSTS=1')).toContain('edge does not have this setting')
    expect(refusal('settings.S3_BUKET=b')).toContain('no process has this setting')
    expect(refusal('edge.replica=2')).toContain("additional properties 'replica' not allowed")
    expect(refusal('workers.pools.traces.queues={span}')).toContain('there is no queue span')
    expect(refusal('workers.pools.traces=null')).toContain('the queue traces needs a pool')
    expect(refusal('workers.pools.more.queues={logs}')).toContain('the queue logs is in two pools')
    expect(refusal('secrets.existingSecret=')).toContain('name the Secret')
    expect(refusal('httpRoute.enabled=true')).toContain('name the Gateway')
  })

  it('refuses addresses whose ports no network policy opens, and opens those that are listed', () => {
    const off = 'networkPolicies.enabled=false'
    expect(refusal('settings.CLICKHOUSE_URL=https://a:8443|https://b')).toContain('networkPolicies.clickhouse.ports')
    expect(refusal('settings.CLICKHOUSE_URL=https://a:8443|https://b', off)).toBe('accepted')
    expect(refusal('settings.S3_ENDPOINT=http://s3.example')).toContain('S3_ENDPOINT: add the port 80')
    expect(refusal('api.settings.AUTH_JWKS_URL=https://id.example:8443/keys')).toContain('add the port 8443')
    const listed = ['networkPolicies.redis.ports={26380,6380}', 'networkPolicies.objectStore.ports={9001}']
    const more = 'networkPolicies.extraEgress[0].ports[0].port=80'
    const values = [...listed, more, 'settings.S3_ENDPOINT=http://s3.example:9001/path']
    const manifests = manifestsOf([...SECRET, ...values.flatMap(value => ['--set', value])])
    expect(manifests.flatMap(validatorOf())).toEqual([])
    const policy = manifests.find(({ kind, metadata }) => kind === 'NetworkPolicy' && metadata.name === 'penstock-edge')
    const ports = policy?.spec.egress.map((rule: { ports: { port: number }[] }) => rule.ports.map(({ port }) => port))
    expect(ports).toEqual([[53, 53], [26380, 6380], [9001], [80]])
  })

  it('puts edge and API behind one address by the rules that are tested in deploy/proxy', () => {
    const file = new URL('../proxy/gateway/httproute.yaml', import.meta.url)
    const tested = load(readFileSync(file, 'utf8')) as Manifest
    const route = manifestsOf([...SECRET, ...ROUTE]).find(({ kind }) => kind === 'HTTPRoute')
    expect(route?.spec.rules).toEqual(tested.spec.rules)
  })

  it('starts no workers while they are paused', () => {
    const pools = manifestsOf([...SECRET, '--set', 'workers.paused=true']).filter(
      ({ kind, metadata }) => kind === 'Deployment' && metadata.name.includes('workers'),
    )
    expect(pools.map(({ spec }) => spec.replicas)).toEqual(pools.map(() => 0))
  })
})

it.skipIf(helm !== undefined)(`(${NO_HELM})`, context => context.skip())
