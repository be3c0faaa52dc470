import { appendFileSync } from 'node:fs'
import type { Reporter, SerializedError, TestModule } from 'vitest/node'

/** The result of one project of vitest. Seconds are those of its files, of which several run at a time. */
export interface SuiteReport {
  readonly suite: string
  readonly passed: number
  readonly failed: number
  readonly skipped: number
  readonly seconds: number
  /** Tests that failed and then passed when they were run again. */
  readonly retried: readonly string[]
}

/** Appends a line of JSON for each project to the file that SUITE_REPORT names. */
export default class SuiteReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly SerializedError[]): void {
    const path = process.env.SUITE_REPORT
    if (path === undefined) return
    const projects = Map.groupBy(modules, ({ project }) => project.name)
    const reports = [...projects].map(([suite, files]) => report(suite, files))
    // An error outside of any test, such as a promise that nothing awaits.
    if (errors.length > 0) reports.push({ ...NOTHING, suite: 'errors outside of tests', failed: errors.length })
    for (const line of reports) appendFileSync(path, `${JSON.stringify(line)}\n`)
  }
}

const NOTHING: SuiteReport = { suite: '', passed: 0, failed: 0, skipped: 0, seconds: 0, retried: [] }

function report(suite: string, files: readonly TestModule[]): SuiteReport {
  const tests = files.flatMap(file => [...file.children.allTests()])
  const count = (state: string) => tests.filter(test => test.result().state === state).length
  // A file that does not load has errors and no tests.
  const unloaded = files.filter(
    file => file.errors().length > 0 && [...file.children.allTests('failed')].length === 0,
  ).length
  return {
    suite,
    passed: count('passed'),
    failed: count('failed') + unloaded,
    skipped: count('skipped'),
    seconds: files.reduce((sum, file) => sum + file.diagnostic().duration, 0) / 1_000,
    retried: files.flatMap(file =>
      [...file.children.allTests('passed')]
        .filter(test => test.diagnostic()?.flaky)
        .map(test => `${file.relativeModuleId} > ${test.fullName}`),
    ),
  }
}
