import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { expect, it } from 'vitest'
import { ROOT, trackedFiles } from './prose.ts'

it('each script of Redis is named by a test on a real one', () => {
  const files = trackedFiles()
  const read = (file: string) => readFileSync(ROOT + file, 'utf8')
  const scripts = files.filter(file => file.endsWith('.lua'))
  const included = new Set(
    scripts
      .map(read)
      .join()
      .match(/(?<=@include ".*)[\w-]+(?=")/g),
  )
  const tests = files.filter(file => /^test\/integration\/.*\.test\.ts$/.test(file))
  const tested = new Set(
    tests
      .map(read)
      .join()
      .match(/[\w-]+(?=\.lua)/g),
  )
  const names = scripts.map(file => basename(file, '.lua')).filter(name => !included.has(name))
  expect(names.filter(name => !tested.has(name))).toEqual([])
})
