import fc from 'fast-check'
import { expect, it } from 'vitest'
import { debugIdLine, readBundleComments } from './bundle-comments.ts'

const ID = '85314830-023f-4cf1-a267-535f4e37bb17'
const read = (text: string) => readBundleComments(Buffer.from(text))

/** As the command does it. */
function inject(text: string, debugId: string): string {
  const bundle = Buffer.from(text)
  const { insertAt } = readBundleComments(bundle)
  const line = debugIdLine(debugId, bundle.subarray(0, insertAt))
  return Buffer.concat([bundle.subarray(0, insertAt), Buffer.from(line), bundle.subarray(insertAt)]).toString()
}

it.each([
  ['on the last line', 'f();\n//# sourceMappingURL=a.js.map', 'a.js.map'],
  ['with lines and comments behind it', 'f();\r\n//# sourceMappingURL=a.js.map\r\n\r\n// bye\r\n', 'a.js.map'],
  ['behind the code of its line', 'f();//# sourceMappingURL=a.js.map\n', 'a.js.map'],
  ['of the old form', 'f();\n//@ sourceMappingURL=a.js.map\n', 'a.js.map'],
  ['as a block comment', 'f();\n/*# sourceMappingURL=a.js.map*/\n', 'a.js.map'],
  ['the last of two', 'f();\n//# sourceMappingURL=old.map\n//# sourceMappingURL=new.map\n', 'new.map'],
  ['alone', '//# sourceMappingURL=a.js.map', 'a.js.map'],
  ['with a debug id below it', `f();\n//# sourceMappingURL=a.js.map\n//# debugId=${ID}\n`, 'a.js.map'],
])('a sourceMappingURL is found %s', (_name, text, url) => {
  expect(read(text).sourceMappingUrl).toBe(url)
})

it.each([
  ['has code behind it', '//# sourceMappingURL=a.js.map\nf();\n'],
  ['stands in a string', 'const s = "//# sourceMappingURL=a.js.map"\n'],
  ['stands in a template', 'const s = `\n//# sourceMappingURL=a.js.map\n`\n'],
  ['stands in a block comment', '/*\n//# sourceMappingURL=a.js.map\n*/\n'],
  ['names nothing', 'f();\n//# sourceMappingURL=\n'],
  ['names something with a blank in it', 'f();\n//# sourceMappingURL=a b\n'],
])('a sourceMappingURL is none when it %s', (_name, text) => {
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

it('puts the comment of a debug id in a line of its own, above the sourceMappingURL, with the line ends of the file', () => {
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

it('adds one line and nothing else to any text, finds the id again, and reads the same map as before', () => {
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
