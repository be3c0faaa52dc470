import type { CostModel } from './cost-model.ts'
import type { Inputs } from './inputs.ts'
import { makePlan, type Plan } from './make-plan.ts'

/** A load that equal installations share, each with its own workspaces. */
interface DividedLoad {
  readonly installations: number
  /** Bounds that a single installation would exceed. Empty if it is enough. */
  readonly because: readonly string[]
  /** Inputs of one installation. */
  readonly share: Inputs
  /** Plan of one installation. Its `exceeded` is empty unless no number of installations is enough. */
  readonly plan: Plan
}

/** No load of the inputs needs more, unless its nodes are too small for any load. */
const MOST_INSTALLATIONS = 1_000

/** Finds the smallest number of installations that do not exceed their bounds. */
export function divideLoad(model: CostModel, inputs: Inputs): DividedLoad {
  const single = { installations: 1, because: [], share: inputs, plan: makePlan(model, inputs) }
  for (let installations = 1; installations <= MOST_INSTALLATIONS; installations++) {
    const share = { ...inputs, 'spans-per-day': inputs['spans-per-day'] / installations }
    const plan = makePlan(model, share)
    if (plan.exceeded.length === 0) return { installations, because: single.plan.exceeded, share, plan }
  }
  return single
}
