import { z } from 'zod'

const advisorySchema = z.looseObject({
  name: z.string(),
  title: z.string(),
  url: z.string(),
  severity: z.string(),
})

/** The report of `npm audit --json`, as far as it is read here. */
export const auditReportSchema = z.looseObject({
  vulnerabilities: z.record(z.string(), z.looseObject({ via: z.array(z.union([z.string(), advisorySchema])) })),
})

/** Advisories that are accepted for a time, with the reason. */
export const auditExceptionsSchema = z.array(
  z.strictObject({
    /** Last part of the address of the advisory, such as `GHSA-xxxx-xxxx-xxxx`. */
    advisory: z.string().regex(/^GHSA(-[0-9a-z]{4}){3}$/),
    package: z.string(),
    /** Last day on which it is accepted. */
    until: z.iso.date(),
    reason: z.string().min(20),
  }),
)

/** Severities that refuse a package. */
const REFUSED = ['high', 'critical']

/** The outcome of an audit, one line for each advisory or exception. */
interface AuditVerdict {
  readonly refused: readonly string[]
  readonly accepted: readonly string[]
  /** Exceptions that nothing needs. */
  readonly unused: readonly string[]
}

/** Judges the advisories of high and critical severity. `today` is a date such as `2026-11-23`. */
export function judgeAudit(
  { vulnerabilities }: z.infer<typeof auditReportSchema>,
  exceptions: z.infer<typeof auditExceptionsSchema>,
  today: string,
): AuditVerdict {
  const found = Object.values(vulnerabilities).flatMap(({ via }) => via.filter(entry => typeof entry !== 'string'))
  const advisories = new Map(
    found.filter(({ severity }) => REFUSED.includes(severity)).map(advisory => [advisory.url, advisory]),
  )
  const [refused, accepted, used]: [string[], string[], Set<string>] = [[], [], new Set()]
  for (const { name, title, url, severity } of advisories.values()) {
    const exception = exceptions.find(({ advisory, package: of }) => of === name && url.endsWith(`/${advisory}`))
    const text = `${name}: ${title} (${severity}, ${url})`
    if (exception) used.add(exception.advisory)
    if (exception === undefined) refused.push(text)
    else if (exception.until < today) refused.push(`${text}: its exception ended on ${exception.until}`)
    else accepted.push(`${text}: accepted until ${exception.until}: ${exception.reason}`)
  }
  const unused = exceptions.filter(({ advisory }) => !used.has(advisory)).map(({ advisory }) => advisory)
  return { refused, accepted, unused }
}
