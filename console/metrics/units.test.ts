import { expect, it } from 'vitest'
import { unitName, valueFormat } from './units.ts'

it.each<[unit: string, value: number, shown: string]>([
  ['By', 262_144_000, '250 MiB'],
  ['By', 262_598_656, '≈ 250.4 MiB'],
  ['By', 512, '512 B'],
  ['kBy', 3, '≈ 2.93 KiB'],
  ['By/s', 2_048, '2 KiB/s'],
  ['s', 0.0234, '23.4 ms'],
  ['s', 0.00000001, '10 ns'],
  ['s', 90, '1.5 min'],
  ['ms', 1, '1 ms'],
  ['ms', 0.25, '250 µs'],
  ['us', 1_500_000, '1.5 s'],
  ['ns', 7_200_000_000_000, '2 h'],
  ['%', 12.5, '12.5%'],
  ['1', 0.75, '0.75'],
  ['', 262_600_000, '262,600,000'],
  ['{order}', 12, '12 order'],
  ['{request}/s', 3, '3 request/s'],
  ['1/s', 3, '3/s'],
  ['Cel', 21.5, '21.5 °C'],
  ['Mbit', 12, '12 Mbit'],
  ['furlong', 1 / 3, '≈ 0.3333 furlong'],
  ['s', 0, '0 s'],
  ['By', -2_048, '-2 KiB'],
])('shows a value in %s: %d is %s', (unit, value, shown) => {
  expect(valueFormat(unit).format(value)).toBe(shown)
})

it('shows rates per second, and nothing where nothing is known', () => {
  expect(valueFormat('By', { isRate: true }).format(1_536)).toBe('1.5 KiB/s')
  expect(valueFormat('{order}', { isRate: true }).format(2)).toBe('2 order/s')
  expect(valueFormat('', { isRate: true }).format(2)).toBe('2/s')
  expect([null, undefined].map(valueFormat('s').format)).toEqual(['–', '–'])
})

it('states all digits of a value in the unit that was sent', () => {
  expect(valueFormat('By').exact(262_598_656)).toBe('262,598,656 By')
  expect(valueFormat('{order}', { isRate: true }).exact(1 / 3)).toBe('0.333333333333333 order/s')
})

it('has one unit for an axis, and marks at which its labels are short', () => {
  const bytes = valueFormat('By')
  expect(bytes.formatAll([0, 64, 128, 192, 256].map(mib => mib * 2 ** 20))).toEqual([
    '0 MiB',
    '64 MiB',
    '128 MiB',
    '192 MiB',
    '256 MiB',
  ])
  expect(bytes.increments).toContain(64 * 2 ** 20)
  expect(valueFormat('ms').increments).toContain(30_000)
  expect(valueFormat('{order}').increments).toBeUndefined()
  expect(valueFormat('s').formatAll([0, 0.005, 0.01])).toEqual(['0 ms', '5 ms', '10 ms'])
})

it('names units as words', () => {
  expect(['{order}', 'By', '1', '', '{request}/s'].map(unitName)).toEqual(['order', 'By', '', '', 'request/s'])
})
