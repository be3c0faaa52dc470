import { expect, it } from 'vitest'
import { z } from 'zod'
import { parseConfig, processSettings } from './config.ts'

it('keeps the admin port on this machine when the clients come from other machines', () => {
  const config = parseConfig(z.object(processSettings), { BIND_HOST: '0.0.0.0' })
  expect(config.ADMIN_BIND_HOST).toBe('127.0.0.1')
})
