import type { Manifest } from './render.ts'

const UNITS: Readonly<Record<string, number>> = { '': 1, m: 1e-3, Mi: 2 ** -10, Gi: 1 }

/** Returns what the pods of Deployments request together, with the fewest pods that an autoscaler keeps. Jobs are left out. */
export function requestsOf(manifests: readonly Manifest[]) {
  const pods: Record<string, number> = {}
  let cpus = 0
  let gib = 0
  for (const { metadata, spec } of manifests.filter(({ kind }) => kind === 'Deployment')) {
    const scaler = manifests.find(each => each.spec?.scaleTargetRef?.name === metadata.name)
    const count: number = spec.replicas ?? scaler?.spec.minReplicas ?? scaler?.spec.minReplicaCount
    pods[metadata.name.replace('penstock-', '')] = count
    for (const { resources } of spec.template.spec.containers) {
      cpus += count * amountOf(resources.requests.cpu)
      gib += count * amountOf(resources.requests.memory)
    }
  }
  return { cpus, gib, pods }
}

/** Returns CPUs, or memory in GiB. */
function amountOf(quantity: string | number): number {
  const [, number = '', unit = ''] = /^([\d.]+)([A-Za-z]*)$/.exec(String(quantity)) ?? []
  const factor = UNITS[unit]
  if (factor === undefined) throw new Error(`the quantity ${quantity} has an unknown unit`)
  return Number(number) * factor
}
