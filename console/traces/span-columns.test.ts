import { expect, it } from 'vitest'
import { hueOf } from './span-columns.ts'

it('gives a service one colour, by its name alone, and different ones to most', () => {
  expect(['checkout', 'inventory', 'payment', 'gateway'].map(hueOf)).toEqual([7, 8, 5, 9])
  const hues = Array.from({ length: 1_200 }, (_, i) => hueOf(`service-${i}`))
  for (let hue = 0; hue < 12; hue++) expect(hues.filter(one => one === hue).length).toBeGreaterThan(50)
})
