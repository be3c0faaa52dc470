import type { Reporter, TestModule } from 'vitest/node'

/** Start of each line that names a flaky test; `.ci/run` looks for it. */
const FLAKY = 'passed only when run again: '

/** Lists the tests that failed and then passed when they were run again, so that a retry hides none of them. */
export default class FlakyReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    for (const module of modules) {
      for (const test of module.children.allTests('passed')) {
        if (test.diagnostic()?.flaky)
          console.log(`${FLAKY}${module.project.name} ${module.relativeModuleId} > ${test.fullName}`)
      }
    }
  }
}
