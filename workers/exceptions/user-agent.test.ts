import { expect, it } from 'vitest'
import { browserOf, browserOfBrands, systemOf } from './user-agent.ts'

const KIT = 'AppleWebKit/537.36 (KHTML, like Gecko)'
const MAC = 'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7)'

it.each([
  [`Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${KIT} Chrome/131.0.0.0 Safari/537.36`, 'Chrome 131', 'Windows 10'],
  [
    `Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${KIT} Chrome/131.0.0.0 Safari/537.36 Edg/131.0.0.0`,
    'Edge 131',
    'Windows 10',
  ],
  [`Mozilla/5.0 (Windows NT 6.1; Trident/7.0; rv:11.0) like Gecko`, 'Internet Explorer 11', 'Windows 7'],
  [`Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0`, 'Firefox 132', 'Linux'],
  [`${MAC} AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Safari/605.1.15`, 'Safari 18', 'macOS'],
  [
    'Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1',
    'Safari 17',
    'iOS 17',
  ],
  [
    'Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/131.0.6778.73 Mobile/15E148 Safari/604.1',
    'Chrome 131',
    'iOS 17',
  ],
  [
    `Mozilla/5.0 (Linux; Android 14; SM-S918B) ${KIT} SamsungBrowser/27.0 Chrome/125.0.0.0 Mobile Safari/537.36`,
    'Samsung Internet 27',
    'Android 14',
  ],
  [`Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) ${KIT} Chrome/131.0.0.0 Safari/537.36`, 'Chrome 131', 'ChromeOS'],
  [`${MAC} ${KIT} Chrome/128.0.0.0 Safari/537.36 OPR/114.0.0.0`, 'Opera 114', 'macOS'],
  [`Mozilla/5.0 (X11; Linux x86_64) ${KIT} HeadlessChrome/131.0.0.0 Safari/537.36`, 'Headless Chrome 131', 'Linux'],
  ['Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)', 'Googlebot', ''],
  ['curl/8.5.0', 'curl 8', ''],
  ['okhttp/4.12.0', 'okhttp 4', ''],
  ['python-requests/2.32.3', 'python-requests 2', ''],
  ['Dalvik/2.1.0 (Linux; U; Android 9; Pixel 3)', 'Dalvik 2', 'Android 9'],
  ['Mozilla/5.0', '', ''],
  ['', '', ''],
])('reads %s', (userAgent, browser, system) => {
  expect([browserOf(userAgent), systemOf(userAgent)]).toEqual([browser, system])
})

it.each([
  ['["Chromium 131"," Not_A Brand 24"]', 'Chromium 131'],
  ['["Microsoft Edge 131.0.1","Chromium 131","Not/A)Brand 8"]', 'Edge 131'],
  ['[]', ''],
  ['no list', ''],
])('reads the brands %s', (brands, browser) => {
  expect(browserOfBrands(brands)).toBe(browser)
})

it('reads any text in time', () => {
  const before = performance.now()
  for (const part of ['a', 'Version/1 ', '(iPhone ', 'Trident/ ', '-bo', '.', '"not a ']) {
    const text = part.repeat(512).slice(0, 512)
    for (let i = 0; i < 10; i++) [browserOf(text), systemOf(text), browserOfBrands(text)]
  }
  expect(performance.now() - before).toBeLessThan(500)
})
