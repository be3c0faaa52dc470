import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { parseConfig } from '../../shared/runtime/config.ts'
import { deliverySettings } from './settings.ts'

const schema = z.object(deliverySettings)

describe('the settings of deliveries', () => {
  it('are all optional', () => {
    expect(parseConfig(schema, {})).toEqual({})
  })

  it('are read in the form in which they are used', () => {
    const DELIVERY_KEY = randomBytes(32).toString('base64')
    const config = parseConfig(schema, {
      ...{ DELIVERY_KEY, DELIVERY_ALLOWED_RECEIVERS: '10.0.0.0/8,hooks.internal', MAIL_FROM: 'alerts@example.com' },
      SMTP_URL: 'smtp://mail.example',
    })
    expect(config).toMatchObject({ DELIVERY_KEY, MAIL_FROM: 'alerts@example.com', SMTP_URL: { tls: 'starttls' } })
    expect(config.DELIVERY_ALLOWED_RECEIVERS?.addresses.check('10.9.9.9')).toBe(true)
  })

  it('are refused without their values', () => {
    const env = {
      ...{ DELIVERY_KEY: 'my-secret', DELIVERY_KEY_PREVIOUS: 'my-secret', SMTP_URL: 'smtps://user:my-secret@host/x' },
      ...{ DELIVERY_ALLOWED_RECEIVERS: '10.0.0.0/99', MAIL_FROM: 'my-secret' },
    }
    const read = () => parseConfig(schema, env)
    for (const name of Object.keys(env)) expect(read).toThrow(name)
    expect(read).not.toThrow('my-secret')
  })
})
