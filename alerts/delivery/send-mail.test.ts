import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { type ParsedMail, simpleParser } from 'mailparser'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createAuthority } from '../../test/support/proxy/certificates.ts'
import { type Mail, type MailDeps, RECIPIENTS_MAX, sendMail } from './send-mail.ts'
import type { SmtpServer } from './smtp-server.ts'

interface Received {
  readonly mail: ParsedMail
  readonly raw: string
  readonly from: string
  readonly to: readonly string[]
  readonly isEncrypted: boolean
}

const PASSWORD = 'correct horse battery'
const dir = mkdtempSync(join(tmpdir(), 'penstock-mail-'))
const trusted = getCACertificates('default')
const stops: (() => void)[] = []
let tls: { readonly cert: string; readonly key: string }

beforeAll(() => {
  const authority = createAuthority(dir)
  const files = authority.issue('localhost')
  tls = { cert: readFileSync(files.certificate, 'utf8'), key: readFileSync(files.key, 'utf8') }
  setDefaultCACertificates([...trusted, authority.pem])
})
afterAll(() => {
  setDefaultCACertificates(trusted)
  rmSync(dir, { recursive: true })
})
afterEach(() => {
  for (const stop of stops.splice(0)) stop()
})

/** Starts a mail server that keeps what it receives, and refuses addresses that begin with `unknown`. */
async function start(options: SMTPServerOptions = {}) {
  const received: Received[] = []
  const server = new SMTPServer({
    ...{ ...tls, authOptional: true, logger: false, disableReverseLookup: true, closeTimeout: 100 },
    onAuth: ({ username, password }, _session, done) =>
      password === PASSWORD ? done(null, { user: username }) : done(new Error(`wrong password ${password}`)),
    onRcptTo: ({ address }, _session, done) =>
      address.startsWith('unknown') ? done(new Error(`no mailbox ${address}`)) : done(),
    onData: async (stream, { envelope: { mailFrom, rcptTo }, secure }, done) => {
      const pieces: Buffer[] = []
      for await (const piece of stream) pieces.push(piece)
      const raw = Buffer.concat(pieces)
      const to = rcptTo.map(({ address }) => address)
      const from = mailFrom === false ? '' : mailFrom.address
      received.push({ mail: await simpleParser(raw), raw: raw.toString('utf8'), from, to, isEncrypted: secure })
      done()
    },
    ...options,
  })
  server.on('error', () => server.emit('refused'))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  stops.push(() => server.close())
  return { received, port: (server.server.address() as AddressInfo).port }
}

const depsFor = (port: number, server: Partial<SmtpServer> = {}): MailDeps => ({
  ...{ server: { host: 'localhost', port, tls: 'starttls', ...server }, from: 'alerts@penstock.example' },
  mailDeadlineMs: 10_000,
})

const mail: Mail = {
  id: 'evt_2KWPBgLlAfxdpx2AI54pPJ85f4W',
  to: ['one@example.com', 'größe@example.org'],
  subject: 'Error rate of checkout: 12 % 🚨',
  text: 'The error rate is 12 %.\n.\nSee https://penstock.example/größe',
  html: '<p>The error rate is <b>12 %</b>.</p>',
}

describe('a mail', () => {
  it('arrives as text and as HTML, encrypted, with an id that each attempt repeats', async () => {
    const { port, received } = await start()
    for (let attempt = 0; attempt < 2; attempt++) {
      const outcome = await sendMail(depsFor(port), mail)
      expect(outcome).toMatchObject({ kind: 'delivered', answer: expect.stringMatching(/^250/) })
      expect(outcome.reason).toBeUndefined()
    }
    for (const { mail: read, from, to, isEncrypted } of received) {
      expect(read).toMatchObject({ subject: mail.subject, text: mail.text, html: mail.html })
      expect(read.messageId).toBe(`<${mail.id}@penstock.example>`)
      expect(read.headers.get('auto-submitted')).toBe('auto-generated')
      expect(read.from?.text).toBe('"Penstock" <alerts@penstock.example>')
      expect({ from, to, isEncrypted }).toEqual({ from: 'alerts@penstock.example', to: mail.to, isEncrypted: true })
    }
    expect(received).toHaveLength(2)
  })

  it('cannot add a header, an address or a part', async () => {
    const { port, received } = await start()
    const hostile: Mail = {
      ...mail,
      subject: 'a\r\nBcc: all@example.com\r\n\r\nbody\u2028c',
      text: '.\r\n\r\nMAIL FROM:<x@example.com>\r\n.\r\nQUIT\r\n',
      html: '<img src="file:///etc/passwd">',
      to: ['one@example.com'],
    }
    expect(await sendMail(depsFor(port), hostile)).toMatchObject({ kind: 'delivered' })
    expect(received).toHaveLength(1)
    const [{ mail: read, raw, to } = fail()] = received
    expect(read.subject).toBe('a Bcc: all@example.com body c')
    expect(read.bcc).toBeUndefined()
    expect(to).toEqual(['one@example.com'])
    expect(read.text).toContain('MAIL FROM')
    expect(raw).not.toMatch(/^bcc/im)
  })

  it.each([
    [['one@example.com\r\nBcc: all@example.com']],
    [['one@example.com, two@example.com']],
    [['Name <one@example.com>']],
    [['one@example.com>\r\nRCPT TO:<two@example.com']],
    [[]],
    [Array.from({ length: RECIPIENTS_MAX + 1 }, (_, i) => `a${i}@example.com`)],
  ])('to %j is refused', async to => {
    const { port, received } = await start()
    expect(await sendMail(depsFor(port), { ...mail, to })).toMatchObject({ kind: 'refused' })
    expect(await sendMail(depsFor(port), { ...mail, id: 'a\r\nb' })).toMatchObject({ kind: 'refused' })
    expect(received).toEqual([])
  })
})

describe('a mail server', () => {
  it('that refuses some addresses has taken the mail for the others', async () => {
    const { port } = await start()
    const outcome = await sendMail(depsFor(port), { ...mail, to: ['one@example.com', 'unknown@example.com'] })
    expect(outcome).toMatchObject({ kind: 'delivered', reason: 'the mail server refuses 1 of 2 addresses' })
    expect(await sendMail(depsFor(port), { ...mail, to: ['unknown@example.com'] })).toMatchObject({
      ...{ kind: 'failed', status: 550, reason: 'the mail server refuses the addresses' },
    })
  })

  it('gets user and password, encrypted, and the outcome never has the password', async () => {
    const { port, received } = await start({ authOptional: false })
    const withPassword = (password: string) => depsFor(port, { user: { name: 'alerts', password } })
    expect(await sendMail(withPassword(PASSWORD), mail)).toMatchObject({ kind: 'delivered' })
    const outcome = await sendMail(withPassword('wrong password'), mail)
    expect(outcome).toMatchObject({ kind: 'failed', status: 535 })
    expect(outcome.reason).toBe('the mail server refuses the user or the password')
    expect(outcome.answer).toContain('wrong password'.replaceAll(/./g, '*'))
    expect(received).toHaveLength(1)
  })

  it('must offer TLS with a trusted certificate, unless TLS is off', async () => {
    const { port, received } = await start({ disabledCommands: ['STARTTLS'] })
    expect(await sendMail(depsFor(port), mail)).toMatchObject({ kind: 'failed' })
    expect(await sendMail(depsFor(port, { tls: 'always' }), mail)).toMatchObject({ kind: 'failed' })
    expect(received).toEqual([])
    expect(await sendMail(depsFor(port, { tls: 'off' }), mail)).toMatchObject({ kind: 'delivered' })
    expect(received[0]?.isEncrypted).toBe(false)
    const secure = await start({ secure: true })
    expect(await sendMail(depsFor(secure.port, { tls: 'always' }), mail)).toMatchObject({ kind: 'delivered' })
    // The certificate is one of localhost.
    const byAddress = depsFor(secure.port, { tls: 'always', host: '127.0.0.1' })
    expect(await sendMail(byAddress, mail)).toMatchObject({ kind: 'failed' })
    expect(secure.received).toHaveLength(1)
  })

  it('that is silent ends at the deadline, and one that is down at once', async () => {
    const silent = createServer()
    await once(silent.listen(0, '127.0.0.1'), 'listening')
    const { port } = silent.address() as AddressInfo
    const closed = new Promise(resolve => silent.once('connection', socket => socket.on('close', resolve).resume()))
    const outcome = await sendMail({ ...depsFor(port), mailDeadlineMs: 1_000 }, mail)
    expect(outcome).toMatchObject({ kind: 'failed' })
    expect(outcome.durationMs).toBeLessThan(5_000)
    await closed
    silent.close()
    await once(silent, 'close')
    expect(await sendMail(depsFor(port), mail)).toMatchObject({ kind: 'failed' })
  })
})

function fail(): never {
  throw new Error('nothing was received')
}
