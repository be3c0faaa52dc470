import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { describeService } from './describe-service.ts'

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-describe-'))
  write('package.json', { name: '@shop/api', version: '1.2.3' })
})
afterEach(() => rmSync(folder, { recursive: true }))

function write(path: string, content: unknown): string {
  const file = join(folder, path)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content))
  return file
}

const describeScript = (script: string | undefined, env = {}) => describeService({ env, script, cwd: folder })

describe('describeService', () => {
  it('names the service and its release by the nearest package.json with a name', () => {
    write('dist/package.json', { type: 'commonjs' })
    const expected = { 'service.name': '@shop/api', 'service.version': '1.2.3' }
    expect(describeScript(write('dist/src/main.js', ''))).toEqual(expected)
    expect(describeScript(undefined)).toEqual(expected)
  })

  it('takes the application of the current folder where a dependency is the main script', () => {
    write('node_modules/next/package.json', { name: 'next', version: '99.0.0' })
    const script = write('node_modules/next/bin.js', '')
    mkdirSync(join(folder, 'bin'))
    symlinkSync(script, join(folder, 'bin/next'))
    for (const path of [script, join(folder, 'bin/next')]) {
      expect(describeScript(path)).toMatchObject({ 'service.name': '@shop/api', 'service.version': '1.2.3' })
    }
  })

  it('prefers the stated release, then the commit that the host states', () => {
    const script = write('main.js', '')
    expect(describeScript(script, { GITHUB_SHA: 'abc' })).toMatchObject({ 'service.version': 'abc' })
    const both = { GITHUB_SHA: 'abc', PENSTOCK_RELEASE: ' v7 ' }
    expect(describeScript(script, both)).toMatchObject({ 'service.version': 'v7' })
    expect(describeScript(script, { PENSTOCK_RELEASE: '' })).toMatchObject({ 'service.version': '1.2.3' })
  })

  it('names the environment, by NODE_ENV if no other is stated', () => {
    const script = write('main.js', '')
    const environmentOf = (env: object) => describeScript(script, env)['deployment.environment.name']
    expect(environmentOf({})).toBeUndefined()
    expect(environmentOf({ NODE_ENV: 'production' })).toBe('production')
    expect(environmentOf({ NODE_ENV: 'production', PENSTOCK_ENVIRONMENT: 'staging' })).toBe('staging')
  })

  it('passes over a package.json that is broken or has no version', () => {
    write('a/package.json', '{')
    write('b/package.json', { name: 'b', version: 7 })
    expect(describeScript(write('a/main.js', ''))).toMatchObject({ 'service.name': '@shop/api' })
    expect(describeScript(write('b/main.js', ''))).toEqual({ 'service.name': 'b' })
  })
})
