import { defineConfig } from 'vitest/config'
import { lengthSettings } from './length-settings.ts'

/**
 * Configuration of `npm run test:hostile`, which attacks the real processes, each with the memory of a small container.
 * Attacks are short but with `--mode nightly`. One file at a time: an attack and its victims have the machine for themselves.
 */
export default defineConfig(({ mode }) => {
  const { env, exclude } = lengthSettings(mode)
  return {
    test: {
      name: 'hostile',
      env,
      include: ['test/hostile/**/*.test.ts'],
      exclude,
      maxWorkers: 1,
      experimental: { viteModuleRunner: false, nodeLoader: false },
      // A test that passed only when it was run again is listed at the end of a CI run.
      retry: process.env.CI ? 1 : 0,
      testTimeout: 600_000,
      hookTimeout: 180_000,
    },
  }
})
