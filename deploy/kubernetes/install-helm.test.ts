import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { cachedHelm, findHelm } from './render.ts'

let env: { readonly PATH: string; readonly XDG_CACHE_HOME: string }
beforeEach(() => {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-helm-'))
  env = { PATH: folder, XDG_CACHE_HOME: folder }
})
afterEach(() => rmSync(env.PATH, { recursive: true }))

const install = () =>
  execFileSync(process.execPath, [fileURLToPath(new URL('install-helm.ts', import.meta.url))], {
    encoding: 'utf8',
    env: { ...env },
  })

it('states that the chart is not rendered where there is neither Helm nor Go', () => {
  expect(install()).toMatch(/^SKIPPED: the chart is not rendered, because there is neither Helm nor a Go toolchain/)
})

it('builds nothing where Helm was built before', () => {
  expect(findHelm(env)).toBeUndefined()
  mkdirSync(dirname(cachedHelm(env)), { recursive: true })
  writeFileSync(cachedHelm(env), '')
  expect(findHelm(env)).toBe(cachedHelm(env))
  expect(install()).toBe(`Helm: ${cachedHelm(env)}\n`)
})
