import type { RequestedReceiver } from '../replace-alerts.ts'

/** A way in which a receiver is reached. */
export type Channel = RequestedReceiver['channel']
/** How a receiver of webhooks knows that they are ours. */
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

/** The choice of how webhooks are signed, named `signature`. */
export function SignatureField({ value = 'hmac' }: { readonly value?: Signature }) {
  return (
    <label class="field">
      <span>It verifies messages with</span>
      <select name="signature" defaultValue={value}>
        <option value="hmac">a secret (HMAC)</option>
        <option value="ed25519">a public key (Ed25519)</option>
      </select>
    </label>
  )
}
