import fc from 'fast-check'
import { expect, it } from 'vitest'
import { debugIdLine, readBundleComments } from './bundle-comments.ts'

const ID = '85314830-023f-4cf1-a267-535f4e37bb17'
const read = (text: string) => readBundleComments(Buffer.from(text))

/** Inserts a debug id as the command does. */
function inject(text: string, debugId: string): string {
  const bundle = Buffer.from(text)
  const { insertAt } = readBundleComments(bundle)
  const line = debugIdLine(debugId, bundle.subarray(0, insertAt))
  return Buffer.concat([bundle.subarray(0, insertAt), Buffer.from(line), bundle.subarray(insertAt)]).toString()
}

it.each([
  ['on the last line', 'f();\n//# sourceMappingURL=a.js.map', 'a.js.map'],
  ['with lines and comments after it', 'f();\r\n//# sourceMappingURL=a.js.map\r\n\r\n// bye\r\n', 'a.js.map'],
  ['after code on the same line', 'f();//# sourceMappingURL=a.js.map\n', 'a.js.map'],
  ['in the old form', 'f();\n//@ sourceMappingURL=a.js.map\n', 'a.js.map'],
  ['as a block comment', 'f();\n/*# sourceMappingURL=a.js.map*/\n', 'a.js.map'],
  ['as the last of two', 'f();\n//# sourceMappingURL=old.map\n//# sourceMappingURL=new.map\n', 'new.map'],
  ['without any code', '//# sourceMappingURL=a.js.map', 'a.js.map'],
  ['with a debug id below it', `f();\n//# sourceMappingURL=a.js.map\n//# debugId=${ID}\n`, 'a.js.map'],
])('finds a sourceMappingURL %s', (_name, text, url) => {
  expect(read(text).sourceMappingUrl).toBe(url)
})

it.each([
  ['is followed by code', '//# sourceMappingURL=a.js.map\nf();\n'],
  ['is in a string', 'const s = "//# sourceMappingURL=a.js.map"\n'],
  ['is in a template', 'const s = `\n//# sourceMappingURL=a.js.map\n`\n'],
  ['is in a block comment', '/*\n//# sourceMappingURL=a.js.map\n*/\n'],
  ['is empty', 'f();\n//# sourceMappingURL=\n'],
  ['contains a space', 'f();\n//# sourceMappingURL=a b\n'],
])('ignores a sourceMappingURL that %s', (_name, text) => {
  expect(read(text)).toEqual({ insertAt: Buffer.byteLength(text) })
})

it('reads a debug id above, below and without a sourceMappingURL, in lower case', () => {
  const comment = `//# debugId=${ID.toUpperCase()}`
  expect(read(`f();\n${comment}\n//# sourceMappingURL=a\n`).debugId).toBe(ID)
  expect(read(`f();\n//# sourceMappingURL=a\n${comment}`).debugId).toBe(ID)
  expect(read(`f();\n${comment}\n`).debugId).toBe(ID)
  expect(read('f();\n//# debugId=1234\n').debugId).toBeUndefined()
  expect(read(`${comment}\nf();\n`).debugId).toBeUndefined()
})

it('inserts the debug id as a separate line above the sourceMappingURL, with the line ends of the file', () => {
  const line = `//# debugId=${ID}`
  expect(inject('f();\n//# sourceMappingURL=a\n', ID)).toBe(`f();\n${line}\n//# sourceMappingURL=a\n`)
  expect(inject('f();\r\n//# sourceMappingURL=a', ID)).toBe(`f();\r\n${line}\r\n//# sourceMappingURL=a`)
  expect(inject('f();//# sourceMappingURL=a\n', ID)).toBe(`f();\n${line}\n//# sourceMappingURL=a\n`)
  expect(inject('f();', ID)).toBe(`f();\n${line}\n`)
  expect(inject('f();\n', ID)).toBe(`f();\n${line}\n`)
  expect(inject('', ID)).toBe(`${line}\n`)
})

const code = fc
  .array(
    fc.oneof(
      fc.constantFrom('f();', '`', '"', "'", '/*', '*/', '//', '//# ', '\n', '\r\n', ' ', 'ü', '\u2028'),
      fc.string(),
    ),
  )
  .map(pieces => pieces.join(''))
const ending = fc.constantFrom(
  '',
  '\n',
  '\r\n',
  '\n//# sourceMappingURL=a.map',
  '//# sourceMappingURL=a.map\n',
  '\n/*# sourceMappingURL=a*/',
)

it('adds exactly one line to any text, and reads back the id and the same map URL', () => {
  fc.assert(
    fc.property(code, ending, fc.uuid(), (head, tail, id) => {
      const text = head + tail
      const before = read(text)
      fc.pre(before.debugId === undefined)
      const injected = inject(text, id)
      const at = Buffer.from(text).subarray(0, before.insertAt).toString().length
      expect(injected.startsWith(text.slice(0, at))).toBe(true)
      expect(injected.endsWith(text.slice(at))).toBe(true)
      const added = injected.slice(at, injected.length - (text.length - at))
      expect(added.trim()).toBe(`//# debugId=${id}`)
      const { debugId, sourceMappingUrl } = read(injected)
      expect({ debugId, sourceMappingUrl }).toEqual({ debugId: id, sourceMappingUrl: before.sourceMappingUrl })
    }),
  )
})
