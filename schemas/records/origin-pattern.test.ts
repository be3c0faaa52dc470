import { expect, it } from 'vitest'
import { isOriginPattern, originMatcher } from './origin-pattern.ts'

it.each([
  'https://shop.example',
  'http://localhost:3000',
  'https://shop.example:8443',
  'https://*.shop.example',
  'https://*.shop.example:8443',
  'http://127.0.0.1:8080',
  'https://xn--bcher-kva.example',
])('accepts %s', text => {
  expect(isOriginPattern(text)).toBe(true)
})

it.each([
  '',
  'null',
  '*',
  'https://*',
  'https://*.example',
  'http://*.shop.example',
  'https://a.*.shop.example',
  'https://*.*.shop.example',
  'shop.example',
  'https://shop.example/',
  'https://shop.example:443',
  'https://SHOP.example',
  'https://bücher.example',
  'https://user@shop.example',
  'ftp://shop.example',
  'file:///index.html',
])('refuses %s', text => {
  expect(isOriginPattern(text)).toBe(false)
})

it('matches exact origins, and every origin below a wildcard', () => {
  const matches = originMatcher(['https://shop.example', 'https://*.apps.example', 'https://*.dev.example:8443'])
  for (const origin of ['https://shop.example', 'https://a.apps.example', 'https://a.b.apps.example']) {
    expect(matches(origin), origin).toBe(true)
  }
  expect(matches('https://a.dev.example:8443')).toBe(true)
  for (const origin of [
    'null',
    'http://shop.example',
    'https://shop.example:8443',
    'https://shop.example.evil.test',
    'https://evilshop.example',
    'https://apps.example',
    'https://.apps.example',
    'https://evil.test/.apps.example',
    'https://evilapps.example',
    'http://a.apps.example',
    'https://a.apps.example:8443',
    'https://a.dev.example',
  ]) {
    expect(matches(origin), origin).toBe(false)
  }
})
