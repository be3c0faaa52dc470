import { readSettings } from './read-settings.ts'

/**
 * The module that `node --import @penstock/node app.js` runs before the application. It has no exports: the environment configures
 * it, and applications add spans, logs and metrics with `@opentelemetry/api`.
 */
const { env } = process
const settings = readSettings(env)
if (settings.isOn) {
  // A program without a destination does not wait for the SDK to load.
  const { startSdk } = await import('./start-sdk.ts')
  await startSdk(settings)
} else if (settings.reason !== undefined) {
  process.stderr.write(`penstock: no telemetry is sent: ${settings.reason}\n`)
}
