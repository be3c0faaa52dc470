import { execFile, spawnSync } from 'node:child_process'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findPrometheus, type Prometheus } from '../../../../support/prometheus/find-prometheus.ts'
import { BASE_MS, gauge, histogram, store } from '../fixture.ts'
import { startTokenProxy } from './fixture.ts'

const found = findPrometheus()
if (typeof found === 'string') console.log(`\nSKIPPED, promtool was not tried: ${found}\n`)
const { promtool } = found as Prometheus
const run = promisify(execFile)
/** promtool 2 does not accept names of labels with dots in lists of series. */
const isOld =
  typeof found === 'string' || /version 2\./.test(spawnSync(promtool, ['--version'], { encoding: 'utf8' }).stdout)
if (isOld) console.log('\nSKIPPED, no list of series was read by promtool, which is not of Prometheus 3\n')

describe.skipIf(typeof found === 'string')('promtool', () => {
  let proxy: Awaited<ReturnType<typeof startTokenProxy>>
  const seconds = BASE_MS / 1_000

  beforeAll(async () => {
    proxy = await startTokenProxy()
    await store([
      gauge('tool_load', [
        { at: 10, value: 1, labels: { host: 'one' } },
        { at: 70, value: 2.5, labels: { host: 'one' } },
      ]),
      histogram('tool_latency', [{ at: 10, counts: [1, 2], bounds: [0.5], labels: { host: 'one' } }]),
    ])
  })
  afterAll(() => proxy?.close())

  async function query(kind: string, expression: string, ...flags: readonly string[]): Promise<string[]> {
    const { stdout } = await run(promtool, ['query', kind, ...flags, proxy.url, expression])
    return stdout.trim().split('\n')
  }

  it('evaluates an instant query', async () => {
    expect(await query('instant', 'tool_load', `--time=${seconds + 60}`)).toEqual([
      `tool_load{host="one", service.name="shop", surface.id="srf_1"} => 1 @[${seconds + 60}]`,
    ])
    expect(await query('instant', '2 * 3', `--time=${seconds + 60}`)).toEqual([`scalar: 6 @[${seconds + 60}]`])
  })

  it('evaluates a range query', async () => {
    const range = [`--start=${seconds}`, `--end=${seconds + 120}`, '--step=60s']
    expect(await query('range', 'sum by (host) (tool_load)', ...range)).toEqual([
      '{host="one"} =>',
      `1 @[${seconds + 60}]`,
      `2.5 @[${seconds + 120}]`,
    ])
  })

  it.skipIf(isOld)('lists series', async () => {
    const range = ['--match=tool_load', '--match=tool_latency_bucket', `--start=${seconds}`, `--end=${seconds + 120}`]
    const { stdout } = await run(promtool, ['query', 'series', ...range, proxy.url])
    expect(stdout.trim().split('\n').sort()).toEqual([
      'tool_latency_bucket{host="one", le="+Inf", service.name="shop", surface.id="srf_1"}',
      'tool_latency_bucket{host="one", le="0.5", service.name="shop", surface.id="srf_1"}',
      'tool_load{host="one", service.name="shop", surface.id="srf_1"}',
    ])
  })

  it('lists values of a label', async () => {
    const range = [`--start=${seconds}`, `--end=${seconds + 120}`]
    const { stdout } = await run(promtool, ['query', 'labels', ...range, proxy.url, '__name__'])
    const names = ['tool_latency_bucket', 'tool_latency_count', 'tool_latency_sum', 'tool_load']
    expect(stdout.trim().split('\n')).toEqual(expect.arrayContaining(names))
  })

  it('shows the message of a query that is not supported', async () => {
    const failed = await run(promtool, ['query', 'instant', proxy.url, 'irate(tool_load[5m])']).catch(
      (error: { stderr: string }) => error.stderr,
    )
    expect(failed).toContain('bad_data: invalid parameter "query": 1:1: the function irate() is not supported')
  })
})
