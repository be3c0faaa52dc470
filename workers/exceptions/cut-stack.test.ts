import { expect, it } from 'vitest'
import { readStack } from '../../shared/stacks/read-stack.ts'
import { cutStack } from './cut-stack.ts'

const cut = (text: string, limitBytes: number) => {
  const bytes = Buffer.from(`xx${text}xx`)
  return cutStack(bytes, 2, bytes.length - 2, limitBytes)
}

it('keeps a text within the limit', () => {
  expect(cut('a\nb', 3)).toBe('a\nb')
})

it('leaves out whole lines in the middle, and keeps the innermost frame of each language', () => {
  const python = Array.from(
    { length: 2_000 },
    (_, i) => `  File "/srv/app/é${i}.py", line ${i + 1}, in f${i}\n    call()`,
  )
  const text = cut(`Traceback (most recent call last):\n${python.join('\n')}\nValueError: x`, 32_768)
  expect(Buffer.byteLength(text)).toBeLessThanOrEqual(32_768)
  expect(text).toMatch(/\n {4}… \d+ bytes left out …\n/)
  expect(text).not.toContain('\u{fffd}')
  expect(readStack(text).links[0]).toMatchObject({
    type: 'ValueError',
    message: 'x',
    frames: { 0: { function: 'f1999' } },
  })

  const v8 = Array.from({ length: 2_000 }, (_, i) => `    at f${i} (/srv/app/a${i}.js:1:2)`)
  const [link] = readStack(cut(`Error: x\n${v8.join('\n')}`, 32_768)).links
  expect(link?.frames[0]?.function).toBe('f0')
})

it('cuts a line without an end between characters', () => {
  const text = cut('é'.repeat(40_000), 32_768)
  expect(Buffer.byteLength(text)).toBeLessThanOrEqual(32_768)
  expect(text).not.toContain('\u{fffd}')
})
