import { afterEach, expect, it, vi } from 'vitest'
import { findBrowser } from '../../support/pages/browser.ts'

afterEach(() => vi.unstubAllEnvs())

it('fails in CI if there is no browser, and leaves its tests out elsewhere', async () => {
  vi.stubEnv('CHROMIUM_PATH', '/nowhere/chromium')
  vi.stubEnv('CI', '1')
  await expect(findBrowser()).rejects.toThrow('a browser is required in CI: /nowhere/chromium')
  vi.stubEnv('CI', '')
  expect(await findBrowser()).toEqual({ missing: '/nowhere/chromium, which CHROMIUM_PATH names' })
})
