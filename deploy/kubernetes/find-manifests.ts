import { type Manifest, render } from './render.ts'

/** Values and names of the variables of a container. */
type Variables = Readonly<Record<string, string | undefined>>

/** Renders the chart with these values, each as `path=value`, and more arguments of Helm. */
export function manifestsOf(helm: string, values: readonly string[] = [], args: readonly string[] = []): Manifest[] {
  const set = ['secrets.existingSecret=stores', ...values].flatMap(value => ['--set', value])
  return render(helm, [...args, ...set])
}

/** Returns why Helm refuses these values, or `accepted`. */
export function refusalOf(helm: string, ...values: string[]): string {
  try {
    manifestsOf(helm, values)
    return 'accepted'
  } catch (error) {
    return String(error)
  }
}

/** Returns the object of this kind and name. Throws if there is none. */
export function named(manifests: readonly Manifest[], kind: string, name: string): Manifest {
  const found = manifests.find(each => each.kind === kind && each.metadata.name === name)
  if (found === undefined) throw new Error(`there is no ${kind} ${name}`)
  return found
}

/** Returns the template of the pods of a component's Deployment. */
export function podOf(manifests: readonly Manifest[], component: string) {
  return named(manifests, 'Deployment', `penstock-${component}`).spec.template
}

/** Returns the environment of the first container of a pod. Those from Secrets are undefined. */
export function variablesOf(pod: {
  readonly spec: { readonly containers: readonly { readonly env: Env }[] }
}): Variables {
  return Object.fromEntries((pod.spec.containers[0]?.env ?? []).map(({ name, value }) => [name, value]))
}

type Env = readonly { readonly name: string; readonly value?: string }[]
