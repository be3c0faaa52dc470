import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { isDeliveryKey, Sealing } from './sealing.ts'

const newKey = () => randomBytes(32).toString('base64')
const owner = { workspaceId: 'wsp_1', receiverId: 'rcv_1' }
const secret = 'https://hooks.slack.example/services/T0/B0/größe'

describe('a sealed secret', () => {
  it('opens for its receiver, and shows nothing of itself', () => {
    const sealing = new Sealing({ key: newKey() })
    const [first, second] = [sealing.seal(owner, secret), sealing.seal(owner, secret)]
    expect([sealing.open(owner, first), sealing.open(owner, second)]).toEqual([secret, secret])
    expect(first).not.toBe(second)
    expect(first).toMatch(/^[0-9a-f]{8}\.[\w-]+$/)
  })

  it('does not open for another receiver or workspace, nor when a part of it is changed', () => {
    const sealing = new Sealing({ key: newKey() })
    const sealed = sealing.seal(owner, secret)
    const others = [
      { ...owner, receiverId: 'rcv_2' },
      { ...owner, workspaceId: 'wsp_2' },
      { workspaceId: 'wsp_1","rcv', receiverId: '_1' },
    ]
    for (const other of others) expect(() => sealing.open(other, sealed)).toThrow(/belongs to another receiver$/)
    const [keyId, text = ''] = sealed.split('.')
    const bytes = Buffer.from(text, 'base64url')
    for (let i = 0; i < bytes.length; i++) {
      const changed = Buffer.from(bytes)
      changed[i] = (changed[i] ?? 0) ^ 1
      expect(() => sealing.open(owner, `${keyId}.${changed.toString('base64url')}`)).toThrow(/was changed/)
    }
    for (const length of [0, 5, 27]) {
      const cut = bytes.subarray(0, length).toString('base64url')
      expect(() => sealing.open(owner, `${keyId}.${cut}`)).toThrow(/was changed/)
    }
  })

  it('opens with the previous key until it is sealed again', () => {
    const [old, key] = [newKey(), newKey()]
    const sealed = new Sealing({ key: old }).seal(owner, secret)
    const both = new Sealing({ key, previousKey: old })
    expect(both.open(owner, sealed)).toBe(secret)
    expect([both.isCurrent(sealed), both.isCurrent(both.seal(owner, secret))]).toEqual([false, true])
    const onlyNew = new Sealing({ key })
    expect(onlyNew.open(owner, both.seal(owner, secret))).toBe(secret)
    expect(() => onlyNew.open(owner, sealed)).toThrow(/another DELIVERY_KEY/)
    expect(() => onlyNew.open(owner, 'nonsense')).toThrow(/another DELIVERY_KEY/)
  })

  it('needs keys of 32 bytes in base64', () => {
    expect(isDeliveryKey(newKey())).toBe(true)
    const invalid = [
      '',
      'secret',
      randomBytes(16).toString('base64'),
      randomBytes(33).toString('base64'),
      `${newKey()}\n`,
    ]
    for (const key of invalid) {
      expect(isDeliveryKey(key)).toBe(false)
      expect(() => new Sealing({ key })).toThrow('a delivery key must be 32 bytes in base64')
    }
  })
})
