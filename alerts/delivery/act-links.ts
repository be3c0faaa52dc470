import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'
import { DAY_MS, SECOND_MS } from '../../schemas/units.ts'
import type { DeliveryKeys } from './sealing.ts'

/** Path of the page on which the holder of a message acts on a finding. It is below that of the console, as proxies route it. */
export const ACT_PATH = '/console/act'
/** How long a link is good for. */
const LIFETIME_MS = 7 * DAY_MS
/** Most characters of a token. One has about 170. */
const TOKEN_CHARACTERS = 400
/** Parts of a token: version, workspace, finding, receiver, expiry in seconds as base 36, and the signature of all before it. */
const TOKEN = /^(1\.(ws_[0-9a-z]+)\.(fnd_[a-z2-7]{26})\.(rcv_[0-9a-f]{20})\.([0-9a-z]{1,8}))\.([\w-]{43})$/

/** The finding that a link acts on, and the receiver of its message. */
interface ActSubject {
  readonly workspaceId: string
  readonly findingId: string
  readonly receiverId: string
}

/** The contents of a good token. */
interface OpenedLink extends ActSubject {
  /** When the link was made. */
  readonly madeAtMs: number
}

/**
 * Makes and opens the links of messages by which findings are acknowledged, resolved or ignored without signing in. A link has a
 * token that is signed with HMAC-SHA256, by keys that are derived from those of deliveries, so nothing of it is stored.
 */
export class ActLinks {
  readonly #keys: readonly Buffer[]
  readonly #publicUrl: string | undefined

  /** `publicUrl` is the address of the service. Without it links are opened, and none is made. */
  constructor({ key, previousKey }: DeliveryKeys, publicUrl: string | undefined) {
    const texts = previousKey === undefined ? [key] : [key, previousKey]
    this.#keys = texts.map(text => {
      return Buffer.from(hkdfSync('sha256', Buffer.from(text, 'base64'), '', 'penstock act links', 32))
    })
    this.#publicUrl = publicUrl
  }

  /** Returns the link for the receiver of a message. It is good for seven days. */
  linkTo({ workspaceId, findingId, receiverId }: ActSubject, nowMs: number): string | undefined {
    const [key] = this.#keys
    if (key === undefined || this.#publicUrl === undefined) return undefined
    const expiry = Math.floor((nowMs + LIFETIME_MS) / SECOND_MS).toString(36)
    const signed = `1.${workspaceId}.${findingId}.${receiverId}.${expiry}`
    return `${this.#publicUrl}${ACT_PATH}?token=${signed}.${signatureOf(key, signed)}`
  }

  /** Returns the contents of a token. Returns undefined if it is forged, was changed, has expired or is of another form. */
  open(token: string, nowMs: number): OpenedLink | undefined {
    const [, signed = '', workspaceId = '', findingId = '', receiverId = '', expiry = '', signature = ''] =
      (token.length <= TOKEN_CHARACTERS && TOKEN.exec(token)) || []
    const sent = Buffer.from(signature)
    // Both keys are tried, so that the time does not depend on which of them matches.
    const matches = this.#keys.map(key => {
      const own = Buffer.from(signatureOf(key, signed))
      return sent.length === own.length && timingSafeEqual(sent, own)
    })
    const endsAtMs = Number.parseInt(expiry, 36) * SECOND_MS
    if (!matches.includes(true) || endsAtMs <= nowMs) return undefined
    return { workspaceId, findingId, receiverId, madeAtMs: endsAtMs - LIFETIME_MS }
  }
}

function signatureOf(key: Buffer, signed: string): string {
  return createHmac('sha256', key).update(signed).digest('base64url')
}
