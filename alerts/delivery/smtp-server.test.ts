import { expect, it } from 'vitest'
import { parseSmtpUrl } from './smtp-server.ts'

it('reads the address of a mail server', () => {
  const user = { name: 'alerts@example.com', password: 'a:b/c@ü' }
  const userinfo = `${encodeURIComponent(user.name)}:${encodeURIComponent(user.password)}`
  expect(parseSmtpUrl(`smtps://${userinfo}@mail.example`)).toEqual({
    ...{ host: 'mail.example', port: 465, tls: 'always', user },
  })
  expect(parseSmtpUrl(`smtp://${userinfo}@mail.example:25/`)).toEqual({
    ...{ host: 'mail.example', port: 25, tls: 'starttls', user },
  })
  expect(parseSmtpUrl('smtp://mail.example')).toEqual({ host: 'mail.example', port: 587, tls: 'starttls' })
  expect(parseSmtpUrl('smtp://[::1]:2525?tls=off')).toEqual({ host: '::1', port: 2_525, tls: 'off' })
})

it.each([
  ...['', 'mail.example', 'http://mail.example', 'smtp://', 'smtp://mail.example/path', 'smtp://mail.example?tls=on'],
  ...['smtp://user:password@mail.example?tls=off', 'smtps://user@mail.example', 'smtps://:password@mail.example'],
  ...[
    'smtps://%ff:%ff@mail.example',
    'smtps://mail.example?tls=off',
    'smtps://mail.example#a',
    'smtp://mail.example:0',
  ],
])('refuses %s', text => {
  expect(parseSmtpUrl(text)).toBeUndefined()
})
