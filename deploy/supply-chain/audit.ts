import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { auditExceptionsSchema, auditReportSchema, judgeAudit } from './judge-audit.ts'
import { runNpmOnProduction } from './production-tree.ts'

/**
 * Entry point of `npm run check:audit`: exits with 1 if a production package has a known fault of high or critical severity that
 * `audit-exceptions.json` does not accept for now. Where the registry answers no audits, it states that and exits with 0.
 */
const exceptions = auditExceptionsSchema.parse(
  JSON.parse(readFileSync(new URL('audit-exceptions.json', import.meta.url), 'utf8')),
)
const { stdout, stderr, tree } = runNpmOnProduction(['audit', '--json'])
const output = parse(stdout)
const report = auditReportSchema.safeParse(output)
if (!report.success) {
  const message = z.looseObject({ message: z.string() }).safeParse(output).data?.message
  const reason = message ?? stderr.split('\n', 1)[0]
  console.log(`npm audit was SKIPPED, because the registry answers no audits: ${reason}`)
} else {
  const { refused, accepted, unused } = judgeAudit(report.data, exceptions, new Date().toISOString().slice(0, 10))
  for (const line of accepted) console.log(line)
  for (const advisory of unused) console.log(`${advisory} is not reported: remove its exception`)
  for (const line of refused) console.error(line)
  if (refused.length > 0) {
    console.error(
      'update these packages, or add a dated exception with its reason to deploy/supply-chain/audit-exceptions.json',
    )
    process.exitCode = 1
  } else console.log(`npm audit: nothing of high or critical severity in ${tree.packages.size} production packages`)
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
