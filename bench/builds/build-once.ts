import type { PenstockOptions } from '../../packages/build/src/options.ts'
import type { UploadReport } from '../../packages/build/src/upload-report.ts'
import { BUILD_WITH, type BundlerName } from '../../test/support/bundlers/build-with.ts'

/** The figures of one build. */
export interface BuildFigures {
  readonly ms: number
  readonly peakBytes: number
  readonly report?: UploadReport
}

/** Builds the application in a process of its own and prints the figures. Arguments: bundler, root, directory, options as JSON. */
const [bundler = '', root = '', directory = '', options] = process.argv.slice(2)
const reports: UploadReport[] = []
const startedAt = performance.now()
const plugin = options ? await createPlugin(JSON.parse(options)) : undefined
await BUILD_WITH[bundler as BundlerName]({ root, directory, plugin, minimize: false })
const ms = performance.now() - startedAt
const figures: BuildFigures = {
  ms,
  peakBytes: process.resourceUsage().maxRSS * 1024,
  ...(reports[0] && { report: reports[0] }),
}
console.log(JSON.stringify(figures))

/** Loads the package as it is published. `packages/pack.ts` has written it. */
async function createPlugin(given: object): Promise<object> {
  const entry = `../../packages/build/dist/${bundler}.js`
  const { default: create }: { default: (options: PenstockOptions) => object } = await import(entry)
  return create({ ...given, onReport: report => reports.push(report) })
}
