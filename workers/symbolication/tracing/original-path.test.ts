import { describe, expect, it } from 'vitest'
import { originalPath } from './original-path.ts'

describe('the path of a source', () => {
  it.each([
    ['webpack://shop/./src/cart.ts', '', 'src/cart.ts'],
    ['webpack:///./src/cart.ts', '', 'src/cart.ts'],
    ['webpack://shop/../node_modules/x/i.js', '', 'node_modules/x/i.js'],
    ['webpack-internal:///./src/App.vue?91ab', '', 'src/App.vue'],
    ['webpack:///./babel-loader.js!./src/cart.js', '', 'src/cart.js'],
    ['turbopack:///[project]/src/cart.ts', '', '[project]/src/cart.ts'],
    ['../../src/cart.ts', '', 'src/cart.ts'],
    ['../../packages/a/../b/x.ts', '', 'packages/b/x.ts'],
    ['cart.ts', 'src', 'src/cart.ts'],
    ['cart.ts', '../src/', 'src/cart.ts'],
    ['cart.ts', 'https://cdn.test/src', '/src/cart.ts'],
    ['/srv/app/src/cart.ts', 'ignored', '/srv/app/src/cart.ts'],
    ['file:///srv/app/src/cart.ts', '', '/srv/app/src/cart.ts'],
    ['https://cdn.test/src/cart.ts?x', '', '/src/cart.ts'],
    ['C:\\app\\src\\cart.ts', 'ignored', 'C:/app/src/cart.ts'],
    ['', 'src', ''],
  ])('%s (root %s) is %s', (source, root, expected) => {
    expect(originalPath(source, root)).toBe(expected)
  })
})
