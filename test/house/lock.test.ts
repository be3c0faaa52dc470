import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { ROOT } from './prose.ts'

/** An entry of the lockfile. Without a platform, a package is for all of them. */
interface LockedPackage {
  readonly version?: string
  readonly integrity?: string
  readonly link?: boolean
  readonly os?: readonly string[]
  readonly cpu?: readonly string[]
}

// Without a digest, `npm ci` installs whatever bytes the registry has (docs/operate/binaries.md#platforms).
it('each package for the supported platform has a digest', () => {
  const lock = JSON.parse(readFileSync(`${ROOT}package-lock.json`, 'utf8')) as {
    packages: Record<string, LockedPackage>
  }
  const packages = Object.entries(lock.packages).filter(
    ([path, { link }]) => path.includes('node_modules/') && link !== true,
  )
  const isSupported = ({ os = ['linux'], cpu = ['x64'] }: LockedPackage) => os.includes('linux') && cpu.includes('x64')
  expect(packages.length).toBeGreaterThan(300)
  const bare = packages.filter(([, locked]) => locked.integrity === undefined)
  expect(bare.filter(([, locked]) => isSupported(locked)).map(([path]) => path)).toEqual([])
  const named = readFileSync(`${ROOT}docs/operate/binaries.md`, 'utf8')
  // What has no digest is of two makers, which the page names with the platforms that are not supported for it.
  expect([...new Set(bare.map(([path]) => path.split('/')[1]))].sort()).toEqual(['@chdb', '@uwsjs'])
  expect(named).toContain('are not supported')
})
