import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { DAY_S } from '../../schemas/units.ts'
import type { Simulation } from './render-plan.ts'

const MAIN = fileURLToPath(new URL('main.ts', import.meta.url))

function simulate(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  return new Promise(resolve => {
    execFile(process.execPath, [MAIN, ...args], (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr }),
    )
  })
}

/** Returns the row of the table of the page. */
function rowOf(spans: string, availability: string, { installations, plan, price, bottlenecks }: Simulation): string {
  const nodes = (name: string) => {
    const { count = 0, cores = 0, memory = 0 } = price.lines.find(line => line.name === name) ?? {}
    return `${count} × ${cores} cores, ${memory} GB`
  }
  const dollars = Math.round(price.dollarsPerMonth * installations).toLocaleString('en')
  const stores = `${nodes('Redis node')} | ${nodes('ClickHouse node')}`
  const fleet = `${plan.edges} × ${plan.edgeCores} | ${plan.workers} × ${plan.workerCores} | ${stores}`
  return `| ${spans}, ${availability} | ${installations} | ${fleet} | $${dollars} | ${bottlenecks[0]?.name} |`
}

describe('npm run simulate', () => {
  it('prints the fleet, its price and its bottlenecks', async () => {
    const { code, stdout } = await simulate('--spans-per-day', '1e12')
    expect(code).toBe(0)
    expect(stdout).toMatch(/^11,574,074 spans\/s as a mean of the day, 23,148,148 spans\/s at the peak\.$/m)
    for (const line of [
      /^This needs \d+ installations\. One would need \d+ shards, of at most 24.*\.$/m,
      /^ {2}All \d+ installations: \$[\d,]+ a month\.$/m,
      /^ {2}edge +\d/m,
      /^ {2}worker +\d/m,
      /^ {2}Redis node +\d/m,
      /^ {2}ClickHouse node +\d/m,
      /\$[\d,.]+ for a billion spans\.$/m,
      /partitions of a queue/,
      /^First bottleneck of this plan: .+: .+\.$/m,
      /^The next: .+: .+\.$/m,
      /^Costs: commit \w+.*, \d{4}-\d\d-\d\d/m,
    ])
      expect(stdout).toMatch(line)
  })

  it('prints the same as JSON', async () => {
    const { code, stdout } = await simulate('--spans-per-day', '1e10', '--json')
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({
      inputs: { 'spans-per-day': 1e10, 'peak-factor': 2 },
      ...{ installations: 1, because: [] },
      plan: { meanRate: expect.closeTo(1e10 / DAY_S) },
      price: { dollarsPerBillionSpans: expect.any(Number) },
    })
  })

  it('plans a small load for less than $100 a month, and what may lose any of it for more', async () => {
    const dollars = async (...args: string[]) => {
      const { stdout } = await simulate('--spans-per-day', '1e6', '--json', ...args)
      return JSON.parse(stdout).price.dollarsPerMonth as number
    }
    const [collector, browser, available] = await Promise.all([
      dollars(),
      dollars('--profile', 'browser'),
      dollars('--availability', 'ha'),
    ])
    expect(collector).toBeLessThan(100)
    expect(browser).toBeLessThan(100)
    expect(available).toBeGreaterThan(2 * collector)
    expect((await simulate('--spans-per-day', '1e6')).stdout).toContain('An outage of one of these is an outage of all')
  })

  it('plans two of each and three zones for availability, and takes an input that is set before a choice', async () => {
    const { stdout } = await simulate('--availability', 'ha', '--profile', 'browser', '--zones', '2', '--json')
    const { inputs, plan, price } = JSON.parse(stdout)
    expect(inputs).toMatchObject({ zones: 2, 'spans-per-payload': 3, 'redis-replicas': 2, 'clickhouse-replicas': 3 })
    expect(plan.edges).toBeGreaterThanOrEqual(2)
    expect(plan.workers).toBeGreaterThanOrEqual(2)
    const names = price.lines.map(({ name }: { name: string }) => name)
    expect(names).toEqual(['edge', 'worker', 'Redis node', 'ClickHouse node', 'ClickHouse Keeper'])
  })

  it('makes the plans that docs/operate/sizing.md explains', async () => {
    const page = await readFile(new URL('../../docs/operate/sizing.md', import.meta.url), 'utf8')
    for (const spans of ['1e6', '1e9', '1e11']) {
      for (const availability of ['single', 'ha']) {
        const args = ['--spans-per-day', spans, '--availability', availability]
        const { stdout } = await simulate(...args, '--json')
        expect(page).toContain(rowOf(spans, availability, JSON.parse(stdout)))
      }
    }
  })

  it.each([
    [['--availability', 'some'], /^--availability some: must be single or ha/],
    [['--profile', ''], /^--profile : must be collector or browser/],
    [['--spans-per-day', '-1'], /^.*--spans-per-day/],
    [['--gzip-share', '2'], /^--gzip-share 2/],
    [['--zones', '1.5'], /^--zones 1.5/],
    [['--spans'], /^Unknown option '--spans'/],
    [['--costs', 'missing.json'], /^--costs: the file cannot be read/],
    [['--costs', fileURLToPath(new URL('../../package.json', import.meta.url))], /^--costs: the file cannot be used/],
  ])('refuses %j and names what is wrong', async (args, reason) => {
    const { code, stderr } = await simulate(...args)
    expect([code, stderr]).toEqual([2, expect.stringMatching(reason)])
  })
})
