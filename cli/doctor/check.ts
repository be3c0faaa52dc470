import { errorMessage } from '../../shared/runtime/errors.ts'
import { withDeadline } from '../../shared/runtime/lifecycle.ts'

/** How bad a finding is: `warning` needs an operator some day, `fault` now. */
export type Result = 'ok' | 'warning' | 'fault'

/** A sentence about the installation. */
export interface Finding {
  readonly result: Result
  readonly text: string
}

/** A finding with the name of its check. */
export interface NamedFinding extends Finding {
  readonly check: string
}

/** One look at the installation. If it throws, the message of the error is its finding. */
export interface Check {
  readonly name: string
  run(): Promise<readonly Finding[]>
}

const ok = (text: string): Finding => ({ result: 'ok', text })
const warning = (text: string): Finding => ({ result: 'warning', text })
const fault = (text: string): Finding => ({ result: 'fault', text })
/** Creates findings. */
export const found = { ok, warning, fault }

/** How long a check may take. A store that does not answer is given up before. */
const CHECK_DEADLINE_MS = 15_000

/** Runs all checks side by side, and returns their findings in the order of the checks. */
export async function runChecks(checks: readonly Check[], deadlineMs = CHECK_DEADLINE_MS): Promise<NamedFinding[]> {
  const findings = await Promise.all(checks.map(check => runCheck(check, deadlineMs)))
  return findings.flat()
}

async function runCheck(check: Check, deadlineMs: number): Promise<NamedFinding[]> {
  const findings = await withDeadline(check.run(), deadlineMs, `no result within ${deadlineMs / 1_000} s`).catch(
    error => [fault(errorMessage(error))],
  )
  return findings.map(finding => ({ check: check.name, ...finding }))
}
