import type { Goal } from '../support/scenario.ts'
import type { Summary } from './statistics.ts'

/** Formats three significant digits, or all digits of a larger integer part. */
export function figureText(value: number): string {
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString('en')
  return Number(value.toPrecision(3)).toString()
}

/** Formats the range of a figure. */
export function rangeText({ min, max }: Summary): string {
  return `${figureText(min)} … ${figureText(max)}`
}

/** Formats a goal. */
export function goalText(goal: Goal): string {
  return 'atLeast' in goal ? `≥ ${goal.atLeast.toLocaleString('en')}` : `≤ ${goal.atMost.toLocaleString('en')}`
}

/** Formats a duration as seconds, or minutes and seconds. */
export function durationText(seconds: number): string {
  const whole = Math.round(seconds)
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`
}
