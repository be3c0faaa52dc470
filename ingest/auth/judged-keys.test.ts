import { expect, it } from 'vitest'
import { JudgedKeys } from './judged-keys.ts'

const entry = (digest: string) => ({ judgement: { ok: true }, digest, validUntil: 1, epoch: 0 })

it('removes the entry that was written longest ago when it is full, from both of its indexes', () => {
  const keys = new JudgedKeys(2)
  keys.set('a', entry('digest-a'))
  keys.set('b', entry('digest-b'))
  keys.set('a', entry('digest-a'))
  keys.set('c', entry('digest-c'))
  expect(['a', 'b', 'c'].map(name => keys.get(name)?.digest)).toEqual(['digest-a', undefined, 'digest-c'])
  keys.deleteDigest('digest-b')
  keys.deleteDigest('digest-c')
  expect(keys.size).toBe(1)
  keys.set('d', entry('digest-d'))
  expect(keys.size).toBe(2)
  keys.clear()
  keys.deleteDigest('digest-a')
  expect(keys.size).toBe(0)
})
