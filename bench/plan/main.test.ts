import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { DAY_S } from '../../schemas/units.ts'

const MAIN = fileURLToPath(new URL('main.ts', import.meta.url))

function simulate(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  return new Promise(resolve => {
    execFile(process.execPath, [MAIN, ...args], (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr }),
    )
  })
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

  it.each([
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
