import { expect, it } from 'vitest'
import { toUpload } from './settings.ts'

const GITHUB = { GITHUB_SHA: 'c0ffee', GITHUB_SERVER_URL: 'https://github.com', GITHUB_REPOSITORY: 'acme/shop' }
const PENSTOCK = { PENSTOCK_URL: 'https://penstock.example', PENSTOCK_SECRET_KEY: 'sk_environment' }

it('takes what options leave out from the environment, and removes maps by default', () => {
  expect(toUpload({}, [], { ...GITHUB, ...PENSTOCK })).toMatchObject({
    version: 'c0ffee',
    commit: 'c0ffee',
    repository: 'https://github.com/acme/shop',
    baseUrl: 'https://penstock.example',
    key: { environment: 'sk_environment' },
    urlPrefix: '~/',
    inject: true,
    removeMaps: true,
  })
  expect(toUpload({}, [], { ...GITHUB, ...PENSTOCK, PENSTOCK_VERSION: '1.4.2' }).version).toBe('1.4.2')
})

it('prefers options', () => {
  const options = {
    version: '2',
    url: 'http://localhost',
    key: 'sk_option',
    commit: 'abc',
    urlPrefix: '/app',
    keepMaps: true,
  }
  expect(toUpload(options, [], { ...GITHUB, ...PENSTOCK })).toMatchObject({
    version: '2',
    commit: 'abc',
    baseUrl: 'http://localhost',
    key: { environment: 'sk_option' },
    urlPrefix: '/app/',
    removeMaps: false,
  })
})

it.each([
  ['no version', { url: 'http://localhost' }],
  ['no http or https URL', { version: '1' }],
  ['no http or https URL', { version: '1', url: 'penstock.example' }],
])('refuses when there is %s', (message, options) => {
  expect(() => toUpload(options, [], {})).toThrow(`there is ${message}`)
})
