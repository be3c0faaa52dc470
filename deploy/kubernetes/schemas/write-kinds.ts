import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { load } from 'js-yaml'

/** Schemas of the kinds that the chart renders, by `apiVersion Kind`. */
const KINDS_FILE = new URL('kinds.json', import.meta.url)

/** Kubernetes' own OpenAPI, and the definitions of what others install, each from the module that publishes them. */
const KUBERNETES = 'k8s.io/kubernetes@v1.36.3'
const KUBERNETES_KINDS: Readonly<Record<string, string>> = {
  'v1 ConfigMap': 'io.k8s.api.core.v1.ConfigMap',
  'v1 Service': 'io.k8s.api.core.v1.Service',
  'v1 ServiceAccount': 'io.k8s.api.core.v1.ServiceAccount',
  'apps/v1 Deployment': 'io.k8s.api.apps.v1.Deployment',
  'autoscaling/v2 HorizontalPodAutoscaler': 'io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler',
  'batch/v1 CronJob': 'io.k8s.api.batch.v1.CronJob',
  'batch/v1 Job': 'io.k8s.api.batch.v1.Job',
  'networking.k8s.io/v1 Ingress': 'io.k8s.api.networking.v1.Ingress',
  'networking.k8s.io/v1 NetworkPolicy': 'io.k8s.api.networking.v1.NetworkPolicy',
  'policy/v1 PodDisruptionBudget': 'io.k8s.api.policy.v1.PodDisruptionBudget',
}
const PROMETHEUS_OPERATOR = 'github.com/prometheus-operator/prometheus-operator@v0.85.0'
const CUSTOM_KINDS = [
  ['github.com/kedacore/keda/v2@v2.21.0', 'config/crd/bases/keda.sh_scaledobjects.yaml'],
  [PROMETHEUS_OPERATOR, 'example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml'],
  [PROMETHEUS_OPERATOR, 'example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml'],
  ['sigs.k8s.io/gateway-api@v1.4.0', 'config/crd/standard/gateway.networking.k8s.io_httproutes.yaml'],
] as const

type Json = unknown
type JsonObject = Record<string, Json>

const isObject = (value: Json): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Returns a schema without prose and without rules that only a server can check. Fields that it does not name are refused. */
function strict(schema: Json, isProperties = false): Json {
  if (Array.isArray(schema)) return schema.map(item => strict(item))
  if (!isObject(schema)) return schema
  if (isProperties) return Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, strict(value)]))
  if (schema['x-kubernetes-int-or-string'] || schema.format === 'int-or-string') return { type: ['integer', 'string'] }
  const kept = Object.entries(schema)
    // Go's flags of a pattern are not those of JavaScript.
    .filter(([name, value]) => name !== 'pattern' || !String(value).includes('(?i)'))
    .filter(([name]) => !name.startsWith('x-') && !['description', 'default', 'format', 'title'].includes(name))
    .map(([name, value]) => [name, strict(value, name === 'properties')] as const)
  const isClosed = 'properties' in schema && !('additionalProperties' in schema)
  const isOpen = schema['x-kubernetes-preserve-unknown-fields'] === true
  return { ...Object.fromEntries(kept), ...(isClosed && !isOpen && { additionalProperties: false }) }
}

function referenced(schema: Json, found: Set<string>, definitions: JsonObject): void {
  if (Array.isArray(schema)) for (const item of schema) referenced(item, found, definitions)
  if (!isObject(schema)) return
  for (const [name, value] of Object.entries(schema)) {
    if (name !== '$ref' || typeof value !== 'string') {
      referenced(value, found, definitions)
      continue
    }
    const definition = value.replace('#/definitions/', '')
    if (found.has(definition)) continue
    found.add(definition)
    referenced(definitions[definition], found, definitions)
  }
}

function moduleFile(module: string, path: string): string {
  const { Dir: dir } = JSON.parse(execFileSync('go', ['mod', 'download', '-json', module], { encoding: 'utf8' }))
  return readFileSync(`${dir}/${path}`, 'utf8')
}

function kindsOfKubernetes() {
  const { definitions } = JSON.parse(moduleFile(KUBERNETES, 'api/openapi-spec/swagger.json'))
  const found = new Set<string>()
  for (const name of Object.values(KUBERNETES_KINDS)) referenced({ $ref: `#/definitions/${name}` }, found, definitions)
  return {
    definitions: Object.fromEntries([...found].sort().map(name => [name, strict(definitions[name])])),
    kinds: Object.fromEntries(
      Object.entries(KUBERNETES_KINDS).map(([kind, name]) => [kind, { $ref: `#/definitions/${name}` }]),
    ),
  }
}

interface CustomResourceDefinition {
  readonly spec: {
    readonly group: string
    readonly names: { readonly kind: string }
    readonly versions: readonly { readonly name: string; readonly schema: { readonly openAPIV3Schema: JsonObject } }[]
  }
}

function customKinds(): JsonObject {
  const entries = CUSTOM_KINDS.flatMap(([module, path]) => {
    const { spec } = load(moduleFile(module, path)) as CustomResourceDefinition
    return spec.versions.map(({ name, schema }) => {
      const { metadata: _, ...properties } = schema.openAPIV3Schema.properties as JsonObject
      const metadata = { $ref: '#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta' }
      const withMetadata = { ...(strict({ ...schema.openAPIV3Schema, properties }) as JsonObject) }
      withMetadata.properties = { ...(withMetadata.properties as JsonObject), metadata }
      return [`${spec.group}/${name} ${spec.names.kind}`, withMetadata] as const
    })
  })
  return Object.fromEntries(entries)
}

const { definitions, kinds } = kindsOfKubernetes()
writeFileSync(KINDS_FILE, `${JSON.stringify({ definitions, kinds: { ...kinds, ...customKinds() } })}\n`)
