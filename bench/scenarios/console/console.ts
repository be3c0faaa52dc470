import type { Page } from 'playwright-core'
import { HOUR_MS } from '../../../schemas/units.ts'
import { openPrintedLink } from '../../../test/support/console/console-page.ts'
import { type ConsoleStack, startConsoleStack } from '../../../test/support/console/signed-in-console.ts'
import { stageLongRecording } from '../../../test/support/console/stage-long-recording.ts'
import { findBrowser } from '../../../test/support/pages/browser.ts'
import { attempt } from '../../support/rounds.ts'
import type { Row, Scenario, ScenarioResult, ScenarioRun } from '../../support/scenario.ts'
import { collapseAll, openFindings, openPlainRows, openTrace, scrollThrough, servePlainRows } from './page-times.ts'
import { openRecording, seek } from './replay-times.ts'
import { type StagedData, stageData } from './staged-data.ts'

interface Size {
  readonly rounds: number
  /** Numbers of spans of the traces. */
  readonly traces: readonly number[]
  readonly findings: number
  /** How often the findings are opened in a round. */
  readonly opens: number
  /** How often another time of the recording is chosen in a round. */
  readonly seeks: number
}
const FULL: Size = { rounds: 5, traces: [100_000, 1_000_000], findings: 10_000, opens: 20, seeks: 50 }
const QUICK: Size = { rounds: 2, traces: [100_000, 1_000_000], findings: 10_000, opens: 5, seeks: 50 }
const PLAIN_ROWS = 100_000
const PAGE_ROWS = 50
const RECORDED_SECONDS = 7_200
const DEADLINE_MS = 60_000

/** Measures the console in a browser. */
export const scenario: Scenario = {
  name: 'console',
  question:
    'How long do pages of the console take in a browser until they can be used: traces of 100,000 and 1,000,000 spans, and ' +
    '10,000 findings, beside a page that has nothing but as many rows; and two hours of replay?',
  run: context => run(context, context.quick ? QUICK : FULL),
}

async function run(context: ScenarioRun, size: Size): Promise<ScenarioResult> {
  const found = await findBrowser()
  if ('missing' in found) return { rows: [], method: 'nothing was measured', skipped: [`no browser: ${found.missing}`] }
  const stack = await startConsoleStack(found.path)
  context.onEnd(() => stack.stop())
  stack.browser.context.setDefaultTimeout(DEADLINE_MS)
  const data = await stageData(stack.credentials)
  context.onEnd(() => data.close())
  const page = await stack.openPage()
  await openPrintedLink(page, stack.start)
  const plain = await stack.openPage()
  const rows = new Samples()
  for (const spans of size.traces) await measureTrace(context, rows, page, data, spans, size.rounds)
  await data.addFindings(size.findings)
  for (const count of [PLAIN_ROWS, PAGE_ROWS]) await servePlainRows(plain, stack.urlOf(`rows-${count}`), count)
  for (let round = 1; round <= size.rounds; round++) {
    const times: number[] = []
    for (let i = 0; i < size.opens; i++) times.push(await openFindings(page))
    rows.add('10,000 findings: painted, p95', 'ms', percentile95(times))
    for (const count of [PAGE_ROWS, PLAIN_ROWS]) {
      rows.add(plainName(count), 'ms', await openPlainRows(plain, stack.urlOf(`rows-${count}`)))
    }
    context.progress(`round ${round} of ${size.rounds}: findings and plain rows`)
  }
  await attempt(context, 'replay', undefined, () => measureReplay(context, rows, page, stack, size))
  return {
    rows: rows.toRows({
      [usableName(PLAIN_ROWS)]: plainName(PLAIN_ROWS),
      '10,000 findings: painted, p95': plainName(PAGE_ROWS),
    }),
    method: `1 warm-up and ${size.rounds} rounds, each with one opening of every trace and ${size.opens} of the findings`,
    notes: [
      'The browser, the API, the workers and the stores share the cores. Pages are opened from another page of the console by a link. Times end in the task after the frame in which the rows are painted.',
      `"Rows alone" is a page of plain rows without any script, from its first byte: ${PLAIN_ROWS.toLocaleString('en')} as a trace has, and ${PAGE_ROWS} as a page of findings has. The console has elements for the rows in view only.`,
      'Scrolling goes through the whole trace in 200 frames. The time of findings includes their request.',
      'The recording has three windows, 56 MB of events and a full snapshot in five minutes. Its first picture includes loading the document and signing in; a seek ends when the picture of the second is there, looked at every 4 ms. Steps of the golden ratio reach all parts of it in no order.',
    ],
  }
}

const usableName = (spans: number) => `${spans.toLocaleString('en')} spans: usable after the first byte`
const plainName = (rows: number) => `${rows.toLocaleString('en')} rows alone`

async function measureTrace(
  context: ScenarioRun,
  rows: Samples,
  page: Page,
  data: StagedData,
  spans: number,
  rounds: number,
): Promise<void> {
  const traceId = await data.addTrace(spans)
  const name = `${spans.toLocaleString('en')} spans`
  context.progress(`${name} are stored`)
  for (let round = 0; round <= rounds; round++) {
    const { afterFirstByteMs, wholeMs } = await openTrace(page, traceId)
    const collapseMs = await collapseAll(page)
    const { longTasks, frameMs } = await scrollThrough(page)
    if (round === 0) continue
    rows.add(usableName(spans), 'ms', afterFirstByteMs)
    rows.add(`${name}: usable after the link`, 'ms', wholeMs)
    rows.add(`${name}: collapse all`, 'ms', collapseMs)
    rows.add(`${name}: tasks over 50 ms while scrolling`, 'tasks', longTasks)
    rows.add(`${name}: frame while scrolling, p99`, 'ms', frameMs)
    context.progress(`${name}, round ${round} of ${rounds}: ${afterFirstByteMs.toFixed(0)} ms after the first byte`)
  }
}

async function measureReplay(
  context: ScenarioRun,
  rows: Samples,
  page: Page,
  stack: ConsoleStack,
  { rounds, seeks }: Size,
): Promise<void> {
  const session = 'session-long'
  const startMs = Math.floor(Date.now() / 1_000) * 1_000 - 3 * HOUR_MS
  await stageLongRecording(stack.credentials, session, startMs, RECORDED_SECONDS)
  const recording = { url: stack.urlOf(`sessions/${session}`), startMs, seconds: RECORDED_SECONDS }
  for (let round = 0; round <= rounds; round++) {
    const firstMs = await openRecording(page, stack.urlOf('pipeline'), recording)
    const times: number[] = []
    for (let i = 1; i <= seeks; i++) times.push(await seek(page, ((round * seeks + i) * GOLDEN_RATIO) % 1, recording))
    if (round === 0) continue
    rows.add('two hours of replay: first picture', 'ms', firstMs)
    rows.add('two hours of replay: seek, p95', 'ms', percentile95(times))
    context.progress(`replay, round ${round} of ${rounds}: first picture ${firstMs.toFixed(0)} ms`)
  }
}

const GOLDEN_RATIO = 0.618_033_988

function percentile95(samples: readonly number[]): number {
  return [...samples].sort((a, b) => a - b)[Math.ceil(samples.length * 0.95) - 1] as number
}

/** Figures by row, in the order in which rows were first added. */
class Samples {
  readonly #rows = new Map<string, { readonly unit: string; readonly samples: number[] }>()

  add(name: string, unit: string, sample: number): void {
    const row = this.#rows.get(name)
    if (row) row.samples.push(sample)
    else this.#rows.set(name, { unit, samples: [sample] })
  }

  /** Returns the rows, some with a ratio to another one. */
  toRows(ratios: Readonly<Record<string, string>>): Row[] {
    return [...this.#rows].map(([name, row]) => {
      const to = ratios[name]
      return { name, ...row, ...(to !== undefined && { ratios: [{ to }] }) }
    })
  }
}
