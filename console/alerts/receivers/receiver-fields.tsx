import type { RequestedReceiver } from '../replace-alerts.ts'

/** A way in which a receiver is reached. */
export type Channel = RequestedReceiver['channel']
/** The kind of signature by which a receiver verifies webhooks. */
export type Signature = NonNullable<RequestedReceiver['signature']>

/** Channels for people. */
export const CHANNELS: Readonly<Record<Channel, string>> = {
  webhook: 'Webhook',
  slack: 'Slack',
  teams: 'Microsoft Teams',
  pagerduty: 'PagerDuty',
  email: 'E-mail',
}

/** Labels of the targets of channels. */
export const TARGETS: Readonly<Record<Channel, string>> = {
  webhook: 'URL',
  slack: 'URL of the incoming webhook',
  teams: 'URL of the workflow',
  pagerduty: 'Integration key of PagerDuty',
  email: 'E-mail addresses, with commas between them',
}

/** Returns the text of a field. */
export function textIn(fields: FormData, field: string): string {
  return String(fields.get(field) ?? '').trim()
}

/** Returns the target of a receiver as the API has it. */
export function targetOf(channel: Channel, text: string): Partial<RequestedReceiver> {
  if (channel === 'pagerduty') return { routingKey: text }
  return channel === 'email' ? { to: text.split(/[\s,;]+/).filter(Boolean) } : { url: text }
}

const SIGNATURES = [
  ['hmac', 'a secret (HMAC)'],
  ['ed25519', 'a public key (Ed25519)'],
] as const

/** The choice of how webhooks are signed, named `signature`. The one of now is first: a form that is reset chooses it. */
export function SignatureField({ now = 'hmac' }: { readonly now?: Signature }) {
  const options = [...SIGNATURES].sort(([kind]) => (kind === now ? -1 : 1))
  return (
    <label class="field">
      <span>It verifies messages with</span>
      <select name="signature">
        {options.map(([kind, name]) => (
          <option key={kind} value={kind}>
            {name}
          </option>
        ))}
      </select>
    </label>
  )
}
