import { describe, expect, it } from 'vitest'
import { readSettings } from './read-settings.ts'

const PENSTOCK = { PENSTOCK_URL: 'https://penstock.example/', PENSTOCK_KEY: 'pk_abc' }

describe('readSettings', () => {
  it('sends every signal to the service, compressed and with the key', () => {
    const destination = (signal: string) => ({
      url: `https://penstock.example/v1/${signal}`,
      headers: { authorization: 'Bearer pk_abc' },
      isCompressed: true,
    })
    expect(readSettings(PENSTOCK)).toEqual({
      isOn: true,
      destinations: { traces: destination('traces'), logs: destination('logs'), metrics: destination('metrics') },
      off: new Set(),
    })
  })

  it('gives variables of OpenTelemetry precedence', () => {
    const settings = readSettings({
      ...PENSTOCK,
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318',
      OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: 'http://logs:4318/here',
      OTEL_EXPORTER_OTLP_HEADERS: 'X-Team=a%20b, Authorization=Bearer other',
      OTEL_EXPORTER_OTLP_LOGS_HEADERS: 'x-team=100%',
      OTEL_EXPORTER_OTLP_COMPRESSION: 'none',
      OTEL_EXPORTER_OTLP_LOGS_COMPRESSION: 'gzip',
    })
    expect(settings).toMatchObject({
      destinations: {
        traces: {
          url: 'http://collector:4318/v1/traces',
          headers: { authorization: 'Bearer other', 'x-team': 'a b' },
          isCompressed: false,
        },
        logs: {
          url: 'http://logs:4318/here',
          headers: { authorization: 'Bearer other', 'x-team': '100%' },
          isCompressed: true,
        },
      },
    })
  })

  it.each([
    ['OTEL_TRACES_EXPORTER', 'none'],
    ['OTEL_TRACES_EXPORTER', 'otlp,console'],
    ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'grpc'],
    ['OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE', 'ca.pem'],
  ])('leaves a signal with %s=%s to the SDK', (name, value) => {
    const settings = readSettings({ ...PENSTOCK, [name]: value })
    expect(settings.isOn && Object.keys(settings.destinations)).toEqual(['logs', 'metrics'])
  })

  it.each([
    [{}, /set PENSTOCK_URL and PENSTOCK_KEY/],
    [{ PENSTOCK_URL: 'https://penstock.example' }, /PENSTOCK_KEY is not set/],
    [{ PENSTOCK_KEY: 'pk_abc' }, /PENSTOCK_URL is not set/],
    [{ ...PENSTOCK, PENSTOCK_URL: 'penstock.example' }, /PENSTOCK_URL must be/],
    [{ ...PENSTOCK, PENSTOCK_KEY: 'sk_abc' }, /must be a public key/],
  ])('states why nothing is sent with %j', (env, reason) => {
    expect(readSettings(env)).toEqual({ isOn: false, reason: expect.stringMatching(reason) })
  })

  it('never repeats a secret key in its reason', () => {
    expect(JSON.stringify(readSettings({ ...PENSTOCK, PENSTOCK_KEY: 'sk_secret' }))).not.toContain('sk_secret')
  })

  it('sends nothing and is silent where the user wants that', () => {
    expect(readSettings({ ...PENSTOCK, OTEL_SDK_DISABLED: 'true' })).toEqual({ isOn: false })
    expect(readSettings({ PENSTOCK_OFF: 'all' })).toEqual({ isOn: false })
  })

  it('switches parts off', () => {
    expect(readSettings({ ...PENSTOCK, PENSTOCK_OFF: 'console, signals,other' })).toMatchObject({
      off: new Set(['console', 'signals']),
    })
  })
})
