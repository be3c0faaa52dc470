import type { TestProject } from 'vitest/node'
import { startCeph } from './ceph.ts'
import { installCeph } from './ceph-packages.ts'

/** Provides the gateway of Ceph to the contract tests of the object store; prints the reason if that is not possible. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const reason = installCeph()
  if (reason !== undefined) {
    project.provide('s3', null)
    return async () => console.log(`\nSKIPPED, nothing was tested against Ceph: ${reason}\n`)
  }
  const ceph = await startCeph()
  project.provide('s3', ceph.s3)
  return ceph.stop
}
