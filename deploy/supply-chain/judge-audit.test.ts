import { expect, it } from 'vitest'
import { auditExceptionsSchema, judgeAudit } from './judge-audit.ts'

const advisory = (name: string, severity: string, id: string) => ({
  name,
  title: 'Remote code execution',
  url: `https://github.com/advisories/${id}`,
  severity,
})
const report = {
  vulnerabilities: {
    parser: {
      via: [advisory('parser', 'high', 'GHSA-aaaa-bbbb-cccc'), advisory('parser', 'low', 'GHSA-low0-low0-low0')],
    },
    // A package that is affected by another one names it.
    client: { via: ['parser', advisory('client', 'critical', 'GHSA-dddd-eeee-ffff')] },
  },
}
const exception = {
  advisory: 'GHSA-aaaa-bbbb-cccc',
  package: 'parser',
  until: '2026-12-31',
  reason: 'the parser reads only files of this repository',
}

it('refuses faults of high and critical severity, each once', () => {
  const { refused } = judgeAudit(report, [], '2026-12-01')
  expect(refused).toEqual([
    'parser: Remote code execution (high, https://github.com/advisories/GHSA-aaaa-bbbb-cccc)',
    'client: Remote code execution (critical, https://github.com/advisories/GHSA-dddd-eeee-ffff)',
  ])
})

it('accepts one with an exception until the day on which that ends', () => {
  const judge = (today: string) => judgeAudit(report, [exception], today)
  expect(judge('2026-12-31').accepted).toHaveLength(1)
  expect(judge('2026-12-31').refused).toHaveLength(1)
  expect(judge('2027-01-01').refused[0]).toMatch(/its exception ended on 2026-12-31$/)
})

it('names exceptions that nothing needs, and requires a date and a reason', () => {
  expect(judgeAudit({ vulnerabilities: {} }, [exception], '2026-12-01').unused).toEqual([exception.advisory])
  const { until: _, ...undated } = exception
  expect(auditExceptionsSchema.safeParse([undated]).success).toBe(false)
  expect(auditExceptionsSchema.safeParse([{ ...exception, reason: 'ok' }]).success).toBe(false)
  expect(auditExceptionsSchema.safeParse([exception]).success).toBe(true)
})
