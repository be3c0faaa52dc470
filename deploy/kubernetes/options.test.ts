import { readFileSync } from 'node:fs'
import { load } from 'js-yaml'
import { describe, expect, it } from 'vitest'
import { manifestsOf, named, podOf, refusalOf, variablesOf } from './find-manifests.ts'
import { findHelm, type Manifest, NO_HELM } from './render.ts'

const helm = findHelm()
if (helm === undefined) console.warn(NO_HELM)
const HELM = helm ?? ''

/** Each rendering takes up to a second on a busy machine. */
const TIMEOUT_MS = 60_000
const read = (path: string) => readFileSync(new URL(path, import.meta.url), 'utf8')

describe.runIf(helm !== undefined)('the options of the chart', { timeout: TIMEOUT_MS }, () => {
  describe('addresses', () => {
    const HOSTS = ['ingress.enabled=true', 'ingress.edgeHost=in.example', 'ingress.apiHost=a.example']

    it('gives edge and API an Ingress each, and OTLP/gRPC one with annotations of its own', () => {
      const manifests = manifestsOf(HELM, [
        ...HOSTS,
        'ingress.annotations.a=b',
        'ingress.grpcAnnotations.protocol=GRPC',
      ])
      const routes = manifests
        .filter(({ kind }) => kind === 'Ingress')
        .map(({ metadata, spec }) => {
          const [{ host, http }] = spec.rules
          const [{ path, backend }] = http.paths
          return [metadata.name, metadata.annotations, host, path, backend.service.name, backend.service.port.name]
        })
      expect(routes).toEqual([
        ['penstock-edge', { a: 'b' }, 'in.example', '/', 'penstock-edge', 'http'],
        [
          'penstock-edge-grpc',
          { a: 'b', protocol: 'GRPC' },
          'in.example',
          '/opentelemetry.proto.collector.trace.v1.TraceService',
          'penstock-edge',
          'grpc',
        ],
        ['penstock-api', { a: 'b' }, 'a.example', '/', 'penstock-api', 'http'],
      ])
      const tested = load(read('../proxy/gateway/httproute.yaml')) as Manifest
      const grpcPaths = tested.spec.rules
        .flatMap((rule: { matches: { path: { value: string } }[] }) => rule.matches.map(({ path }) => path.value))
        .filter((path: string) => /^\/(opentelemetry|grpc)\./.test(path))
      const { rules } = named(manifests, 'Ingress', 'penstock-edge-grpc').spec
      expect(rules[0].http.paths.map(({ path }: { path: string }) => path)).toEqual(grpcPaths)
    })

    it('refuses one host for both, because an Ingress cannot route by method', () => {
      expect(refusalOf(HELM, 'ingress.enabled=true', 'ingress.edgeHost=a.example')).toContain(
        'name edgeHost and apiHost',
      )
      expect(refusalOf(HELM, ...HOSTS, 'ingress.apiHost=in.example')).toContain('an Ingress cannot route by method')
    })

    it('keeps requests in their zone where Kubernetes can', () => {
      const distributions = (...args: string[]) =>
        manifestsOf(HELM, ['trafficDistribution=PreferClose'], args)
          .filter(({ kind }) => kind === 'Service')
          .map(({ spec }) => spec.trafficDistribution)
      expect(distributions()).toEqual(['PreferClose', 'PreferClose', 'PreferClose'])
      expect(distributions('--kube-version', '1.30.0')).toEqual([undefined, undefined, undefined])
    })
  })

  describe('pods of a component', () => {
    it('have the options of all pods and their own, which win', () => {
      const values = {
        podAnnotations: { all: '1', over: '1' },
        nodeSelector: { pool: 'telemetry' },
        tolerations: [{ key: 'all' }],
        priorityClassName: 'high',
        extraEnv: [{ name: 'NODE_EXTRA_CA_CERTS', value: '/ca' }],
        podSecurityContext: { fsGroup: 3000 },
        workers: {
          podAnnotations: { over: '2' },
          podLabels: { team: 'a' },
          tolerations: [{ key: 'workers' }],
          sidecars: [{ name: 'proxy', image: 'proxy' }],
          pools: {
            replay: {
              queues: ['replay', 'replay-chunks'],
              nodeSelector: { pool: 'large' },
              priorityClassName: 'low',
              envFrom: [{ configMapRef: { name: 'more' } }],
              initContainers: [{ name: 'wait', image: 'wait' }],
              topologySpread: { enabled: false },
              podSecurityContext: { runAsUser: 2000 },
              affinity: { nodeAffinity: {} },
            },
          },
        },
      }
      const sets = Object.entries(values).flatMap(([name, value]) => ['--set-json', `${name}=${JSON.stringify(value)}`])
      const manifests = manifestsOf(HELM, [], sets)
      const [replay, traces, edge] = ['workers-replay', 'workers-traces', 'edge'].map(name => podOf(manifests, name))
      const keysOf = ({ spec }: { spec: { tolerations: { key: string }[] } }) =>
        spec.tolerations.map(({ key }) => key).filter(key => !key.startsWith('node.kubernetes.io/'))
      expect(replay.metadata.annotations).toEqual({ all: '1', over: '2' })
      expect(replay.metadata.labels).toMatchObject({ team: 'a', 'penstock/process': 'workers' })
      expect(replay.spec).toMatchObject({
        nodeSelector: { pool: 'large' },
        priorityClassName: 'low',
        initContainers: [{ name: 'wait' }],
        securityContext: { runAsNonRoot: true, runAsUser: 2000, fsGroup: 3000 },
        affinity: { nodeAffinity: {} },
      })
      expect(replay.spec.topologySpreadConstraints).toBeUndefined()
      expect(replay.spec.containers.map(({ name }: { name: string }) => name)).toEqual(['workers', 'proxy'])
      expect(replay.spec.containers[0].envFrom).toEqual([{ configMapRef: { name: 'more' } }])
      expect(keysOf(replay)).toEqual(['all', 'workers'])
      expect(traces.spec).toMatchObject({ nodeSelector: { pool: 'telemetry' }, priorityClassName: 'high' })
      expect(traces.spec.topologySpreadConstraints).toHaveLength(2)
      expect(keysOf(edge)).toEqual(['all'])
      expect(edge.metadata.annotations).toEqual({ all: '1', over: '1' })
      expect(edge.spec.containers).toHaveLength(1)
      for (const pod of [replay, traces, edge]) expect(variablesOf(pod).NODE_EXTRA_CA_CERTS).toBe('/ca')
    })

    it('leave a node that does not answer in seconds, unless the cluster decides', () => {
      const seconds = (...values: string[]) =>
        podOf(manifestsOf(HELM, values), 'edge').spec.tolerations?.map(
          ({ key, tolerationSeconds }: { key: string; tolerationSeconds: number }) => [key, tolerationSeconds],
        )
      const keys = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable']
      expect(seconds()).toEqual(keys.map(key => [key, 30]))
      expect(seconds('unreachableSeconds=0')).toEqual(keys.map(key => [key, 0]))
      expect(seconds('unreachableSeconds=null')).toBeUndefined()
    })

    it('leave the user to a cluster that chooses it', () => {
      const { securityContext } = podOf(manifestsOf(HELM, ['runAsUser=null']), 'edge').spec
      expect(securityContext).toEqual({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } })
    })
  })

  describe('network policies', () => {
    it('let the namespaces of Prometheus and KEDA, more peers and the toolbox reach the admin ports', () => {
      const peersOf = (...values: string[]) =>
        named(manifestsOf(HELM, values), 'NetworkPolicy', 'penstock-edge').spec.ingress.slice(1)
      const namespace = (name: string) => ({
        namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': name } },
      })
      const [admin, toolbox] = peersOf('networkPolicies.admin.namespaces={observability}')
      expect(admin).toEqual({ ports: [{ port: 4319 }], from: [namespace('observability')] })
      expect(toolbox.ports).toContainEqual({ port: 4319 })
      expect(toolbox.from[0].podSelector.matchLabels['app.kubernetes.io/component']).toBe('toolbox')
      const [more] = peersOf('networkPolicies.admin.peers[0].ipBlock.cidr=10.0.0.0/8')
      expect(more.from).toEqual([{ ipBlock: { cidr: '10.0.0.0/8' } }, namespace('monitoring'), namespace('keda')])
    })

    it('exist before the first migration, which runs before the other objects', () => {
      const manifests = manifestsOf(HELM)
      const hookOf = (kind: string) =>
        named(manifests, kind, 'penstock-migrate').metadata.annotations as Record<string, string>
      for (const kind of ['Job', 'NetworkPolicy']) expect(hookOf(kind)['helm.sh/hook']).toBe('pre-install,pre-upgrade')
      expect(Number(hookOf('NetworkPolicy')['helm.sh/hook-weight'])).toBeLessThan(
        Number(hookOf('Job')['helm.sh/hook-weight']),
      )
      // A hook that only `before-hook-creation` removes would stay after `helm uninstall`.
      expect(hookOf('NetworkPolicy')['helm.sh/hook-delete-policy']).toContain('hook-succeeded')
    })
  })

  describe('settings that follow from values', () => {
    const insertsOf = (...values: string[]) => {
      const manifests = manifestsOf(HELM, values)
      const job = named(manifests, 'Job', 'penstock-migrate').spec.template
      const found = variablesOf(job).CLICKHOUSE_INSERTS_PER_SECOND
      expect(variablesOf(podOf(manifests, 'toolbox')).CLICKHOUSE_INSERTS_PER_SECOND).toBe(found)
      return found
    }

    it('give ClickHouse windows for the most workers that a pool may have', () => {
      expect(insertsOf()).toBe('8')
      expect(insertsOf('workers.pools.logs.autoscaling.max=20')).toBe('20')
      expect(insertsOf('workers.pools.logs.autoscaling.max=400')).toBe('100')
      expect(insertsOf('workers.autoscaling.max=2')).toBe('4')
      expect(insertsOf('edge.settings.QUEUE_PARTITIONS=16')).toBe('20')
      expect(insertsOf('settings.QUEUE_PARTITIONS=2')).toBe('12')
      expect(insertsOf('workers.autoscaling.enabled=false', 'workers.pools.logs.replicas=6')).toBe('6')
      expect(insertsOf('migrate.settings.CLICKHOUSE_INSERTS_PER_SECOND=1')).toBe('1')
      expect(insertsOf('settings.CLICKHOUSE_INSERTS_PER_SECOND=2.5')).toBe('2.5')
    })

    it('give the API a heap of a third of its memory limit', () => {
      const optionsOf = (...values: string[]) => variablesOf(podOf(manifestsOf(HELM, values), 'api')).NODE_OPTIONS
      expect(optionsOf()).toBe('--max-old-space-size=128 --max-semi-space-size=4')
      expect(optionsOf('api.resources.limits.memory=1.5Gi')).toBe('--max-old-space-size=512 --max-semi-space-size=4')
      expect(optionsOf('api.resources.limits.memory=900M')).toContain('=286 ')
      expect(optionsOf('api.nodeOptions=--max-old-space-size=64')).toBe('--max-old-space-size=64')
      expect(refusalOf(HELM, 'api.resources.limits.memory=1Ti')).toContain('write 1Ti with Mi or Gi')
    })

    it('keep workers while KEDA cannot read the queues', () => {
      const { fallback, minReplicaCount } = named(
        manifestsOf(HELM, ['workers.pools.traces.autoscaling.fallbackReplicas=3']),
        'ScaledObject',
        'penstock-workers-traces',
      ).spec
      expect(fallback).toEqual({ failureThreshold: 3, replicas: 3, behavior: 'currentReplicasIfHigher' })
      expect(minReplicaCount).toBe(1)
    })
  })

  it('installs more objects, as maps and as text, which may contain templates', () => {
    const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a-{{ .Release.Name }}' } }
    const text = 'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: b-{{ .Release.Namespace }} }'
    const manifests = manifestsOf(HELM, [], ['--set-json', `extraObjects=${JSON.stringify([map, text])}`])
    const names = manifests.filter(({ kind }) => kind === 'ConfigMap').map(({ metadata }) => metadata.name)
    expect(names.sort()).toEqual(['a-penstock', 'b-telemetry'])
  })
})

it.skipIf(helm !== undefined)(`(${NO_HELM})`, context => context.skip())
