/** How one attempt to deliver an alert ended. No field contains a secret of the receiver. */
export interface DeliveryOutcome {
  /**
   * - `delivered`: the receiver has accepted it.
   * - `failed`: it may succeed later (`retry-table.ts`).
   * - `gone`: the receiver wants no more deliveries and is to be disabled.
   * - `refused`: a rule forbids to send it, and no attempt will change that.
   */
  readonly kind: 'delivered' | 'failed' | 'gone' | 'refused'
  /** Status of HTTP, or reply code of SMTP. */
  readonly status?: number
  /** One short sentence part, without a full stop. */
  readonly reason?: string
  readonly durationMs: number
  /** Start of the answer of the receiver, at most 1,000 characters, without control characters. */
  readonly answer?: string
  /** The receiver wants no attempt before this time has passed: at most a day. */
  readonly retryAfterMs?: number
}

/** Most characters of an answer that are kept. */
const ANSWER_CHARACTERS = 1_000
/** Shorter secrets are not replaced: they would be replaced in words, too. None that this service makes is so short. */
const SECRET_CHARACTERS_MIN = 8

/**
 * Returns the text of an answer as it may be shown, or undefined if nothing remains: without control characters, and with
 * asterisks for each character of the secrets, which a receiver may echo as they are, in a URL or in JSON.
 */
export function shownAnswer(text: string, secrets: readonly string[]): string | undefined {
  const hidden = secrets.filter(secret => secret.length >= SECRET_CHARACTERS_MIN)
  // A receiver that answers in JSON may write `/` as `\/`.
  const forms = hidden.flatMap(secret => [
    secret,
    secret.replaceAll('/', '\\/'),
    encodeURIComponent(secret.toWellFormed()),
  ])
  const safe = forms
    .sort((a, b) => b.length - a.length)
    // With as many characters, the last secret, which may be cut off, stays behind the end of what is shown.
    .reduce((shown, secret) => shown.replaceAll(secret, '*'.repeat(secret.length)), text)
    .slice(0, ANSWER_CHARACTERS)
    .replaceAll(/[^\P{Cc}\n\t]/gu, '')
    .trim()
  return safe === '' ? undefined : safe
}
