/** Values of the chart by which a pool scales (`workers.autoscaling`). */
export interface ScalingRules {
  readonly min: number
  readonly max: number
  readonly ageSeconds: number
  readonly costBytes: number
  readonly busyShare: number
  readonly scaleDownSeconds: number
}

/** A second of a simulated pool. */
interface ScalingSample {
  readonly atS: number
  readonly workers: number
  readonly ageSeconds: number
  readonly costBytes: number
}

/** What is simulated besides the rules. */
interface ScalingScenario {
  readonly seconds: number
  /** Cost in bytes that arrives in a second. */
  readonly arrivals: (atS: number) => number
  /** Cost in bytes that one worker stores in a second. */
  readonly workerBytes: number
  /** Time from the decision for a worker until it works: scheduling, start, readiness. */
  readonly startSeconds: number
}

/** Time between two decisions of the HPA, in which it asks KEDA, which asks the edge. */
const SYNC_S = 15
/** Time between two heartbeats of a worker. The edge knows how busy it was before its last one. */
const HEARTBEAT_S = 10
/** The HPA changes nothing while a metric is within this share of its target. */
const TOLERANCE = 0.1
/** Policies of the chart: twice as many or four more in 15 s, and half in a minute. */
const GROW = { share: 1, pods: 4, periodS: 15 }
const SHRINK = { share: 0.5, periodS: 60 }

/**
 * Simulates a pool under the rules of the chart, second by second: a queue in the order of arrival, workers that start late,
 * heartbeats, and the algorithm of the HorizontalPodAutoscaler (autoscaling/v2, external metrics with an AverageValue).
 */
export function simulateScaling(rules: ScalingRules, scenario: ScalingScenario): ScalingSample[] {
  const queue = new Queue()
  const autoscaler = new Autoscaler(rules)
  let startedAtS = Array.from({ length: rules.min }, () => Number.NEGATIVE_INFINITY)
  let workedBytes = 0
  let busyWorkers = 0
  const samples: ScalingSample[] = []
  for (let atS = 0; atS < scenario.seconds; atS += 1) {
    queue.add(atS, scenario.arrivals(atS))
    const working = startedAtS.filter(startS => atS >= startS + scenario.startSeconds).length
    workedBytes += queue.take(working * scenario.workerBytes)
    if (atS % HEARTBEAT_S === 0) {
      busyWorkers = workedBytes / (HEARTBEAT_S * scenario.workerBytes)
      workedBytes = 0
    }
    const ageSeconds = queue.ageAt(atS)
    if (atS % SYNC_S === 0) {
      const wanted = autoscaler.decide(atS, startedAtS.length, { ageSeconds, costBytes: queue.bytes, busyWorkers })
      const added = Array.from({ length: Math.max(0, wanted - startedAtS.length) }, () => atS)
      startedAtS = [...startedAtS, ...added].slice(0, wanted)
    }
    samples.push({ atS, workers: startedAtS.length, ageSeconds, costBytes: queue.bytes })
  }
  return samples
}

/** Work in the order of its arrival. */
class Queue {
  #arrived: { readonly atS: number; bytes: number }[] = []
  #first = 0
  bytes = 0

  add(atS: number, bytes: number): void {
    if (bytes > 0) this.#arrived.push({ atS, bytes })
    this.bytes += Math.max(0, bytes)
  }

  take(bytes: number): number {
    let left = bytes
    for (let first = this.#arrived[this.#first]; first !== undefined && left > 0; first = this.#arrived[this.#first]) {
      const taken = Math.min(left, first.bytes)
      first.bytes -= taken
      left -= taken
      if (first.bytes === 0) this.#first += 1
    }
    if (this.#first > 1_000) this.#arrived = this.#arrived.slice(this.#first)
    if (this.#first > 1_000) this.#first = 0
    this.bytes -= bytes - left
    return bytes - left
  }

  ageAt(atS: number): number {
    const first = this.#arrived[this.#first]
    return first === undefined ? 0 : atS - first.atS
  }
}

interface Metrics {
  readonly ageSeconds: number
  readonly costBytes: number
  readonly busyWorkers: number
}

class Autoscaler {
  readonly #rules: ScalingRules
  #wishes: { readonly atS: number; readonly workers: number }[] = []
  #changes: { readonly atS: number; readonly by: number }[] = []

  constructor(rules: ScalingRules) {
    this.#rules = rules
  }

  decide(atS: number, current: number, metrics: Metrics): number {
    const { ageSeconds, costBytes, busyShare, min, max, scaleDownSeconds } = this.#rules
    const wish = Math.max(
      wishOf(metrics.ageSeconds, ageSeconds, current),
      wishOf(metrics.costBytes, costBytes, current),
      wishOf(metrics.busyWorkers, busyShare, current),
    )
    this.#wishes = [...this.#wishes.filter(({ atS: then }) => then > atS - scaleDownSeconds), { atS, workers: wish }]
    const stable = wish > current ? wish : Math.min(current, Math.max(...this.#wishes.map(({ workers }) => workers)))
    const next = Math.min(max, Math.max(min, this.#limit(atS, current, stable)))
    if (next !== current) this.#changes.push({ atS, by: next - current })
    return next
  }

  #limit(atS: number, current: number, wanted: number): number {
    const changed = (periodS: number, sign: 1 | -1) =>
      this.#changes
        .filter(({ atS: then, by }) => then > atS - periodS && Math.sign(by) === sign)
        .reduce((sum, { by }) => sum + by, 0)
    if (wanted > current) {
      const before = current - changed(GROW.periodS, 1)
      return Math.min(wanted, Math.max(Math.ceil(before * (1 + GROW.share)), before + GROW.pods))
    }
    const before = current - changed(SHRINK.periodS, -1)
    return Math.max(wanted, Math.floor(before * (1 - SHRINK.share)))
  }
}

function wishOf(total: number, target: number, current: number): number {
  if (Math.abs(total / (target * current) - 1) <= TOLERANCE) return current
  return Math.ceil(total / target)
}

/** Returns how often workers were removed and within `seconds` added again. */
export function countFlaps(samples: readonly ScalingSample[], seconds: number): number {
  let flaps = 0
  let removedAtS = Number.NEGATIVE_INFINITY
  for (const [i, { atS, workers }] of samples.entries()) {
    const before = samples[i - 1]?.workers ?? workers
    if (workers > before && atS - removedAtS <= seconds) flaps += 1
    if (workers > before) removedAtS = Number.NEGATIVE_INFINITY
    if (workers < before) removedAtS = atS
  }
  return flaps
}
