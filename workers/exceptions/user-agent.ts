/** Browsers by what they write into a user agent. Those that also name Chrome or Safari come before them. */
const BROWSERS: readonly (readonly [name: string, pattern: RegExp])[] = [
  ['Edge', /\b(?:Edg(?:A|iOS)?|Edge)\/(\d+)/],
  ['Opera', /\b(?:OPR|OPiOS|Opera)\/(\d+)/],
  ['Samsung Internet', /\bSamsungBrowser\/(\d+)/],
  ['Yandex Browser', /\bYaBrowser\/(\d+)/],
  ['Vivaldi', /\bVivaldi\/(\d+)/],
  ['Electron', /\bElectron\/(\d+)/],
  ['Firefox', /\b(?:Firefox|FxiOS)\/(\d+)/],
  ['Headless Chrome', /\bHeadlessChrome\/(\d+)/],
  ['Chrome', /\b(?:Chrome|CriOS)\/(\d+)/],
  ['Safari', /\bVersion\/(\d+)[\d.]*(?: Mobile\/\w+)? Safari\//],
  ['Internet Explorer', /\b(?:MSIE |Trident\/.{0,80}rv:)(\d+)/],
]
const BOT = /[\w.-]{0,40}(?:bot|crawler|spider)\b/i
/** The first product of a user agent that is of no browser: `curl/8.5.0`, `okhttp/4.12.0`. */
const PRODUCT = /^([\w.-]{1,60})(?:\/(\d+))?/

const WINDOWS: Readonly<Record<string, string>> = { '10.0': ' 10', '6.3': ' 8.1', '6.2': ' 8', '6.1': ' 7' }
/** Names of `os.type` as people write them. */
const OS_TYPES: Readonly<Record<string, string>> = {
  darwin: 'macOS',
  freebsd: 'FreeBSD',
  linux: 'Linux',
  windows: 'Windows',
}

/** Returns browser or client of a user agent with its major version, such as `Chrome 131`. Empty if it names none. */
export function browserOf(userAgent: string): string {
  const bot = BOT.exec(userAgent)
  if (bot !== null) return bot[0]
  for (const [name, pattern] of BROWSERS) {
    const found = pattern.exec(userAgent)
    if (found !== null) return `${name} ${found[1]}`
  }
  const [, name = '', version] = PRODUCT.exec(userAgent) ?? []
  return name === 'Mozilla' ? '' : withVersion(name, version)
}

/** Returns the operating system of a user agent, such as `Android 14`. All state the same version of macOS, so it is left out. */
export function systemOf(userAgent: string): string {
  const windows = /Windows NT ([\d.]+)/.exec(userAgent)
  if (windows !== null) return `Windows${WINDOWS[windows[1] ?? ''] ?? ''}`
  const ios = /\((?:iPhone|iPad|iPod)[^)]{0,80}? OS (\d+)/.exec(userAgent)
  if (ios !== null) return `iOS ${ios[1]}`
  const android = /Android(?: (\d+))?/.exec(userAgent)
  if (android !== null) return withVersion('Android', android[1])
  if (userAgent.includes('Mac OS X')) return 'macOS'
  if (userAgent.includes('CrOS')) return 'ChromeOS'
  return /Linux|X11/.test(userAgent) ? 'Linux' : ''
}

/** Returns the browser of `browser.brands`, a list in JSON that also has Chromium and a brand that is none. */
export function browserOfBrands(brands: string): string {
  const listed = brands.match(/"[^"]{1,80}"/g)?.map(brand => brand.slice(1, -1)) ?? []
  const real = listed.filter(brand => !/not.{0,3}a.{0,3}brand/i.test(brand))
  const chosen = real.find(brand => !brand.startsWith('Chromium')) ?? real[0] ?? ''
  const [, name = chosen, version] = /^(.*?) (\d+)[\d.]*$/.exec(chosen) ?? []
  return withVersion(name.replace(/^(?:Google|Microsoft) /, ''), version)
}

/** Returns an operating system by `os.name` and `os.version`, else by `os.type`. */
export function systemOfResource(name: string, version: string, type: string): string {
  return name === '' ? (OS_TYPES[type] ?? type) : withVersion(name, version)
}

/** Adds the major version to a name, if there is one. */
export function withVersion(name: string, version = ''): string {
  const major = /^\d{1,5}(?![\d#])/.exec(version)?.[0]
  return major === undefined || name === '' ? name : `${name} ${major}`
}
