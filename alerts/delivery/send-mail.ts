import { createTransport } from 'nodemailer'
import { emailSchema } from '../../schemas/http/fields.ts'
import { SECOND_MS } from '../../schemas/units.ts'
import { type DeliveryOutcome, shownAnswer } from './outcome.ts'
import type { SmtpServer } from './smtp-server.ts'

/** Dependencies of {@link sendMail}. */
export interface MailDeps {
  readonly server: SmtpServer
  /** Address of the sender. */
  readonly from: string
  /** Bounds the whole attempt. */
  readonly mailDeadlineMs: number
}

/** A mail to a receiver, as text and as HTML. */
export interface Mail {
  /** Becomes the message id, the same for each attempt, so that mail servers can drop repeats. Letters, digits, `_` and `-`. */
  readonly id: string
  readonly to: readonly string[]
  readonly subject: string
  readonly text: string
  readonly html: string
}

/** Most addresses of one receiver. They see each other. */
export const RECIPIENTS_MAX = 20
/** A line of a mail has at most 998 characters (RFC 5322), and inboxes show about 70. */
const SUBJECT_CHARACTERS_MAX = 200

/**
 * Sends a mail, once, over a connection of its own. It is delivered if the server takes it for at least one address; `reason`
 * counts those that the server refuses. Never throws for what a server or a client does.
 */
export async function sendMail(deps: MailDeps, mail: Mail): Promise<DeliveryOutcome> {
  const startedMs = performance.now()
  const end = (outcome: Omit<DeliveryOutcome, 'durationMs'>): DeliveryOutcome => ({
    ...outcome,
    durationMs: Math.round(performance.now() - startedMs),
  })
  const rule = ruleBroken(mail)
  if (rule !== undefined) return end({ kind: 'refused', reason: rule })
  const signal = AbortSignal.timeout(deps.mailDeadlineMs)
  const transport = createTransport(transportOptions(deps))
  try {
    const { accepted, rejected, response } = await transport.sendMail({ ...messageOf(deps, mail), signal })
    const answer = shownAnswer(response, secretsOf(deps))
    const refused = rejected.length
    const reason = `the mail server refuses ${refused} of ${refused + accepted.length} addresses`
    return end({ kind: 'delivered', ...(answer !== undefined && { answer }), ...(refused > 0 && { reason }) })
  } catch (error) {
    if (signal.aborted) return end({ kind: 'failed', reason: `not sent within ${deps.mailDeadlineMs / SECOND_MS} s` })
    return end(failureOf(error, secretsOf(deps)))
  } finally {
    transport.close()
  }
}

function ruleBroken({ id, to }: Mail): string | undefined {
  if (!/^[\w-]{1,128}$/.test(id)) return 'the id of a mail must be letters, digits, _ and -'
  if (to.length === 0 || to.length > RECIPIENTS_MAX) return `a mail must have 1 to ${RECIPIENTS_MAX} addresses`
  return to.every(address => emailSchema.safeParse(address).success) ? undefined : 'an address of the mail is invalid'
}

function transportOptions({ server: { host, port, tls, user }, mailDeadlineMs }: MailDeps) {
  return {
    ...{ host, port, secure: tls === 'always', requireTLS: tls === 'starttls', ignoreTLS: tls === 'off' },
    ...{ connectionTimeout: mailDeadlineMs, greetingTimeout: mailDeadlineMs, socketTimeout: mailDeadlineMs },
    ...{ dnsTimeout: mailDeadlineMs, socketCloseTimeout: SECOND_MS },
    tls: { rejectUnauthorized: true },
    ...(user && { auth: { user: user.name, pass: user.password } }),
    // Neither files nor URLs are read, whatever a text contains.
    ...{ disableFileAccess: true, disableUrlAccess: true },
  }
}

/** Addresses are objects, so that nodemailer does not look for several in one text. */
function messageOf({ from }: MailDeps, { id, to, subject, text, html }: Mail) {
  const addressed = to.map(address => ({ name: '', address }))
  return {
    ...{ from: { name: 'Penstock', address: from }, to: addressed, text, html },
    subject: subject.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ').slice(0, SUBJECT_CHARACTERS_MAX),
    messageId: `<${id}@${from.slice(from.lastIndexOf('@') + 1)}>`,
    // RFC 3834: out-of-office replies are not sent to such a mail.
    headers: { 'auto-submitted': 'auto-generated' },
  }
}

const secretsOf = ({ server: { user } }: MailDeps) => (user ? [user.password] : [])

/** Reasons by the codes of nodemailer. */
const REASONS: Readonly<Record<string, string>> = {
  EAUTH: 'the mail server refuses the user or the password',
  ECONNECTION: 'the mail server closed the connection',
  EDNS: 'the name of the mail server has no address',
  EENVELOPE: 'the mail server refuses the addresses',
  EMESSAGE: 'the mail server refuses the mail',
  EPROTOCOL: 'the mail server does not speak SMTP as required',
  ESOCKET: 'the connection to the mail server failed',
  ETIMEDOUT: 'the mail server did not answer in time',
  ETLS: 'the mail server does not offer TLS as required',
}

function failureOf(error: unknown, secrets: readonly string[]): Omit<DeliveryOutcome, 'durationMs'> {
  const { code, responseCode, response } = error as { code?: string; responseCode?: number; response?: string }
  const answer = response === undefined ? undefined : shownAnswer(response, secrets)
  return {
    kind: 'failed',
    reason: REASONS[code ?? ''] ?? 'the mail could not be sent',
    ...(responseCode !== undefined && { status: responseCode }),
    ...(answer !== undefined && { answer }),
  }
}
