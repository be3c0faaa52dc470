import { defineConfig } from 'vitest/config'
import { MINUTE_MS } from '../../../schemas/units.ts'
import { lengthSettings } from './length-settings.ts'

/** Configuration of `npm run test:clients`, in which official clients of OpenTelemetry send by their defaults. */
export default defineConfig(({ mode }) => {
  const { env } = lengthSettings(mode)
  // For the global setup, which runs in this process.
  Object.assign(process.env, env)
  return {
    test: {
      name: 'clients',
      env,
      include: ['test/clients/**/*.test.ts'],
      globalSetup: ['test/support/setup/clients-setup.ts'],
      experimental: { viteModuleRunner: false, nodeLoader: false },
      retry: process.env.CI ? 1 : 0,
      testTimeout: 3 * MINUTE_MS,
      hookTimeout: 3 * MINUTE_MS,
      maxWorkers: 1,
    },
  }
})
