import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { debugIdStatement, findStatementPlace, STATEMENT_LENGTH } from './debug-id-statement.ts'

const ID = '85314830-023f-4cf1-a267-535f4e37bb17'
const place = (text: string, isWhole = true) => findStatementPlace(Buffer.from(text), isWhole)

describe('the statement of a debug id', () => {
  it('stores the id under a stack whose first frame is in the bundle', () => {
    const context: { _penstockDebugIds?: Record<string, string> } = {}
    runInNewContext(`"use strict"\n${debugIdStatement(ID)}`, context, { filename: 'https://shop.example/app.js' })
    const [[stack, id] = []] = Object.entries(context._penstockDebugIds ?? {})
    expect(id).toBe(ID)
    expect(stack?.split('\n')[1]).toContain('https://shop.example/app.js:2')
    expect(debugIdStatement(ID)).toHaveLength(STATEMENT_LENGTH)
  })

  it.each([
    ['code', '', 'f()'],
    ['a comment', '', '/*! license */f()'],
    ['a hashbang', '#!/usr/bin/env node\n', 'f()'],
    ['a directive', '"use strict";', 'f()'],
    ['directives after comments', "/* a */'use client';\n// b\n'use strict' ;", 'f()'],
    ['a directive that ends with the line', "'use client'", '\nimport "a"'],
    ['an escaped quote', '"use \\" strict";', 'f()'],
    ['a hashbang and a directive', '#!x\n"use strict";', 'f()'],
    ['a string that is called', '', '"a"\n.length'],
    ['a string that is compared', '', '"a"\nin b'],
    ['a string that is compared with !=', '', '"a"\n!=b'],
    ['only a directive', '"use strict"', ''],
    ['nothing', '', ''],
    ['a byte order mark', '\ufeff', 'f()'],
  ])('is put behind directives and before %s', (_name, before, after) => {
    const lines = before.split('\n')
    const expected = { at: Buffer.byteLength(before), line: lines.length - 1, column: lines.at(-1)?.length }
    expect(place(before + after)).toEqual({ ...expected, isThere: false })
    expect(place(before + debugIdStatement(ID) + after)).toEqual({ ...expected, isThere: true })
  })

  it('counts columns in UTF-16 code units, and offsets in bytes', () => {
    expect(place('/* 😀ü */"use strict";f()')).toMatchObject({ at: 25, column: 22 })
  })

  it.each([['/* a long comment'], ['"use stri'], ['"use strict"'], ['// a comment'], ['#!/usr/bin/env node']])(
    'has no place if only %j of the bundle was read',
    text => expect(place(text, false)).toBeUndefined(),
  )

  it('has no place after bytes that are not UTF-8', () => {
    const bundle = Buffer.concat([Buffer.from('/*'), Buffer.from([0xe9]), Buffer.from('*/"use strict";f()')])
    expect(findStatementPlace(bundle, true)).toBeUndefined()
  })
})
