/** What `npm run bench` asks of a scenario: one file of bench/ that exports `scenario`, and a line in bench/main.ts. */
export interface Scenario {
  readonly name: string
  /** What its figures answer, in one sentence. */
  readonly question: string
  /** Runs in a process of its own, alone on the machine as far as we can tell. */
  run(context: ScenarioContext): Promise<ScenarioResult>
}

export interface ScenarioContext {
  /** Fewer and shorter repetitions: to see that it works, not to quote. */
  readonly quick: boolean
  /** Empty, on the disk of the checkout (a /tmp in memory would make fsync free), removed at the end. */
  readonly dir: string
  progress(text: string): void
  /** Run last-in-first-out when the scenario has ended, however it did. */
  onEnd(step: () => Promise<void> | void): void
}

export interface ScenarioResult {
  readonly rows: readonly Row[]
  /** Warm-up and repetitions as they were in this run, such as "1 warm-up round, 3 rounds of 6 s". */
  readonly method: string
  /** What was left out and why, such as a peer that is not installed. The report says so wherever it sums up. */
  readonly skipped?: readonly string[]
  /** What a reader must know to read the figures right. */
  readonly notes?: readonly string[]
  /** Added to the facts of the machine, such as the version of a server that only the scenario starts. */
  readonly facts?: Readonly<Record<string, string>>
}

/** One measured quantity. The report makes medians, spread and ratios from the samples. */
export interface Row {
  /** Unique in its scenario: ratios and `--compare` find a row by it. */
  readonly name: string
  readonly unit: string
  /** One figure per repetition, in the order of the rounds. */
  readonly samples: readonly number[]
  /** Against another row, round by round: what slowed the machine in a round slowed both. */
  readonly ratios?: readonly Ratio[]
  readonly goal?: Goal
  /** CPU seconds per process, for `per` (say "million spans"). */
  readonly cpu?: { readonly per: string; readonly seconds: Readonly<Record<string, number>> }
  readonly peakMemoryBytes?: Readonly<Record<string, number>>
  /** Its place in a chart of the report, if it has one. */
  readonly plot?: Plot
  /** More about it in words: percentiles, rows per insert, errors. */
  readonly details?: Readonly<Record<string, string>>
}

/** Rows of one chart and line, over all scenarios, make a line of that chart. */
export interface Plot {
  readonly chart: 'throughput by payload size' | 'throughput by number of processes'
  readonly line: string
  /** Spans (records, points) a payload, or processes. Above 0: the axis is logarithmic. */
  readonly x: number
}

export interface Ratio {
  /** The name of the other row: the ratio is this one over that one. */
  readonly to: string
  readonly goal?: Goal
}

export type Goal = { readonly atLeast: number } | { readonly atMost: number }
