import { expect, it } from 'vitest'
import { labelOf, reasonText } from './reason.ts'

it('stores a reason as its label, or as its label and detail', () => {
  expect(reasonText({ label: 'truncated' })).toBe('truncated')
  expect(reasonText({ label: 'refused_by_clickhouse', detail: 'Code: 27' })).toBe('refused_by_clickhouse: Code: 27')
  expect(reasonText({ label: 'decoder_fault', detail: 'x'.repeat(2_000) })).toHaveLength(1_000)
})

it('reads the label of a stored reason', () => {
  expect(labelOf('truncated')).toBe('truncated')
  expect(labelOf('refused_by_clickhouse: Code: 27')).toBe('refused_by_clickhouse')
})
