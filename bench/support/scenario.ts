/** A benchmark scenario: a file of bench/scenarios that exports `scenario`, and its name in bench/main.ts. */
export interface Scenario {
  readonly name: string
  /** The question that the figures answer, in one sentence. */
  readonly question: string
  /** Measures. Runs in its own process. */
  run(context: ScenarioRun): Promise<ScenarioResult>
}

/** Services of the bench for a scenario. */
export interface ScenarioContext {
  /** Fewer and shorter rounds, to check that the scenario works. Its figures are not for quoting. */
  readonly quick: boolean
  /** Longer loads, where a scenario has them. */
  readonly full: boolean
  /** Empty directory on the disk of the checkout, removed at the end. With /tmp in memory, fsync would be free. */
  readonly dir: string
  /** Shows a line of progress. */
  progress(text: string): void
  /** Registers an end step. End steps run in reverse order when the scenario has ended, even after an error. */
  onEnd(step: () => Promise<void> | void): void
}

/** Context of a scenario. */
export interface ScenarioRun extends ScenarioContext {
  /** Reports a round that failed. The report shows it, and the figures of the other rounds are kept. */
  failed(text: string): void
}

/** Figures of a scenario. */
export interface ScenarioResult {
  readonly rows: readonly Row[]
  /** Warm-up and rounds of this run, such as "1 warm-up round, 3 rounds of 6 s". */
  readonly method: string
  /** Omitted parts with the reason, such as a peer that is not installed. Every summary shows them. */
  readonly skipped?: readonly string[]
  /** Facts that a reader needs to understand the figures. */
  readonly notes?: readonly string[]
  /** Additional facts of the machine, such as the version of a server that the scenario starts. */
  readonly facts?: Readonly<Record<string, string>>
}

/** Figure of a round, or null if the round failed. */
export type Sample = number | null

/** One measured quantity. The report computes medians, ranges and ratios from the samples. bench/goals.ts has its goals. */
export interface Row {
  /** Unique name in the scenario, by which ratios and goals find the row. */
  readonly name: string
  readonly unit: string
  /** One figure per round, in order. */
  readonly samples: readonly Sample[]
  /** Ratios to other rows, round by round, because a slow moment of the machine affects both rows. */
  readonly ratios?: readonly Ratio[]
  /** CPU seconds by process, per `per` (for example "million spans"). */
  readonly cpu?: { readonly per: string; readonly seconds: Readonly<Record<string, number>> }
  /** Details as text: percentiles, rows per insert, errors. */
  readonly details?: Readonly<Record<string, string>>
  /** Figures for programs that read the file of `--json`, such as bench/plan. No report shows them. */
  readonly figures?: Readonly<Record<string, number>>
}

/** A ratio of this row to another. */
export interface Ratio {
  /** Name of the other row, which is the divisor. */
  readonly to: string
}

/** Bound that a figure should meet. */
export type Goal = { readonly atLeast: number } | { readonly atMost: number }
