import { type DescField, type DescMessage, type MessageShape, ScalarType } from '@bufbuild/protobuf'
import { type ReflectMessage, reflect } from '@bufbuild/protobuf/reflect'
import { randomScalar } from './random-message.ts'
import type { Random } from './scramble-message.ts'

const ID_FIELDS = new Set(['trace_id', 'span_id', 'parent_span_id'])
const UNKNOWN_KEYS = ['futureField', 'trace_idx', 'attributes_', '', 'é', 'Name', 'x'.repeat(300), '__proto__', 'kin']
const SPACES = [' ', '\n', '\t', '\r\n', '  ']

/**
 * Writes a message as OTLP/JSON, as the JavaScript SDK does or, with `random`, in any of the ways that the mapping
 * allows or docs/api/otlp.md#json promises. It shares no code with the reader of the product.
 */
export function otlpJson<Desc extends DescMessage>(desc: Desc, message: MessageShape<Desc>, random?: Random): Buffer {
  const writer = random ? new VariedWriter(random) : new PlainWriter()
  return Buffer.from(writer.message(reflect(desc, message)))
}

class PlainWriter {
  message(message: ReflectMessage): string {
    const members = message.sortedFields
      .filter(field => message.isSet(field))
      .flatMap(field => this.members(message, field))
    return this.object(members)
  }

  protected members(message: ReflectMessage, field: DescField): string[] {
    return [this.member(field, this.fieldValue(message, field))]
  }

  protected member(field: DescField, value: string): string {
    return `${this.key(field.jsonName)}:${value}`
  }

  protected fieldValue(message: ReflectMessage, field: DescField): string {
    if (field.fieldKind === 'list') return this.array([...message.get(field)].map(item => this.value(field, item)))
    return this.value(field, message.get(field as DescField))
  }

  protected value(field: DescField, value: unknown): string {
    if (field.message) return this.message(value as ReflectMessage)
    if (field.enum) return this.enumValue(field, value as number)
    switch (field.scalar) {
      case ScalarType.STRING:
        return this.string(value as string)
      case ScalarType.BOOL:
        return String(value)
      case ScalarType.BYTES: {
        const bytes = Buffer.from(value as Uint8Array)
        return ID_FIELDS.has(field.name) ? this.id(bytes) : this.bytes(bytes)
      }
      case ScalarType.DOUBLE:
        return this.double(value as number)
      default:
        return this.integer(value as number | bigint, field.name === 'int_value')
    }
  }

  protected object(members: string[]): string {
    return `{${members.join(',')}}`
  }

  protected array(items: string[]): string {
    return `[${items.join(',')}]`
  }

  protected key(name: string): string {
    return `"${name}"`
  }

  protected string(value: string): string {
    return JSON.stringify(value)
  }

  protected id(bytes: Buffer): string {
    return `"${bytes.toString('hex')}"`
  }

  protected bytes(bytes: Buffer): string {
    return `"${bytes.toString('base64')}"`
  }

  protected enumValue(_field: DescField, value: number): string {
    return String(value)
  }

  protected integer(value: number | bigint, isAttribute: boolean): string {
    const isShort = typeof value === 'number' || (isAttribute && Number.isSafeInteger(Number(value)))
    return isShort ? String(value) : `"${value}"`
  }

  protected double(value: number): string {
    if (!Number.isFinite(value)) return `"${value}"`
    return Object.is(value, -0) ? '-0' : String(value)
  }
}

class VariedWriter extends PlainWriter {
  readonly random: Random

  constructor(random: Random) {
    super()
    this.random = random
  }

  override message(message: ReflectMessage): string {
    const groups = message.sortedFields.map(field =>
      message.isSet(field) ? this.withEarlier(message, field) : this.absent(field),
    )
    const shuffled = this.chance(0.5) ? groups : groups.sort(() => this.random() - 0.5)
    const members = shuffled.flat()
    if (this.chance(0.08)) members.splice(this.below(members.length + 1), 0, this.unknownMember())
    return this.object(members)
  }

  /** Writes a field, sometimes after a value that it replaces. */
  private withEarlier(message: ReflectMessage, field: DescField): string[] {
    const members = this.members(message, field)
    if (!this.chance(0.03)) return members
    const rivals = (field.oneof?.fields ?? [field]).filter(({ fieldKind }) => fieldKind === 'scalar')
    const rival = rivals[this.below(rivals.length)]
    if (rival?.fieldKind !== 'scalar') return members
    return [this.member(rival, this.value(rival, randomScalar(rival.scalar, this.random))), ...members]
  }

  /** Writes a list, sometimes in two parts. */
  protected override members(message: ReflectMessage, field: DescField): string[] {
    if (field.fieldKind !== 'list' || !this.chance(0.05)) return super.members(message, field)
    const items = [...message.get(field)].map(item => this.value(field, item))
    const cut = this.below(items.length + 1)
    return [items.slice(0, cut), items.slice(cut)].map(part => this.member(field, this.array(part)))
  }

  private absent(field: DescField): string[] {
    if (this.chance(0.04)) return [this.member(field, 'null')]
    if (field.fieldKind === 'list') return this.chance(0.05) ? [this.member(field, this.array([]))] : []
    const hasDefault =
      (field.fieldKind === 'scalar' || field.fieldKind === 'enum') && !field.oneof && field.presence === 3
    if (!hasDefault || !this.chance(0.1)) return []
    return [this.member(field, field.enum ? this.enumName(field) : this.value(field, defaultOf(field)))]
  }

  private enumName(field: DescField): string {
    return this.chance(0.5) ? this.string('SOME_FUTURE_NAME') : this.enumValue(field, 0)
  }

  private unknownMember(): string {
    const key = UNKNOWN_KEYS[this.below(UNKNOWN_KEYS.length)] as string
    return `${this.string(key)}${this.space()}:${this.space()}${this.anything(4)}`
  }

  private anything(depth: number): string {
    switch (this.below(depth > 0 ? 8 : 6)) {
      case 0:
        return this.string('any "text" \u{1F6B0}')
      case 1:
        return this.double(randomScalar(ScalarType.DOUBLE, this.random) as number)
      case 2:
        return 'null'
      case 3:
        return String(this.chance(0.5))
      case 4:
        return '[]'
      case 5:
        return '{}'
      case 6:
        return this.array(Array.from({ length: this.below(4) }, () => this.anything(depth - 1)))
      default:
        return this.object(Array.from({ length: this.below(4) }, (_, i) => `"k${i}":${this.anything(depth - 1)}`))
    }
  }

  protected override object(members: string[]): string {
    return `{${this.space()}${members.map(member => member + this.space()).join(`,${this.space()}`)}}`
  }

  protected override array(items: string[]): string {
    return `[${this.space()}${items.map(item => item + this.space()).join(`,${this.space()}`)}]`
  }

  protected override member(field: DescField, value: string): string {
    const name = this.chance(0.05) ? field.name : field.jsonName
    return `${this.key(name)}${this.space()}:${this.space()}${value}`
  }

  protected override key(name: string): string {
    return this.chance(0.03) ? this.string(name) : `"${name}"`
  }

  /** Writes some characters as escapes; a pair of surrogates stays in one notation. */
  protected override string(value: string): string {
    const escapeRate = this.chance(0.6) ? 0 : this.random() * 0.5
    let text = ''
    for (const character of value) {
      if (escapeRate > 0 && this.chance(escapeRate)) {
        if (character === '/') text += '\\/'
        else for (let i = 0; i < character.length; i++) text += this.unicodeEscape(character.charCodeAt(i))
      } else if (character === '"' || character === '\\' || character < ' ')
        text += JSON.stringify(character).slice(1, -1)
      else text += character
    }
    return `"${text}"`
  }

  private unicodeEscape(code: number): string {
    const digits = code.toString(16).padStart(4, '0')
    return `\\u${this.chance(0.5) ? digits : digits.toUpperCase()}`
  }

  protected override id(bytes: Buffer): string {
    const digits = bytes.toString('hex')
    const choice = this.below(4)
    if (choice === 0) return `"${digits.toUpperCase()}"`
    if (choice === 1)
      return this.string([...digits].map(digit => (this.chance(0.5) ? digit : digit.toUpperCase())).join(''))
    return `"${digits}"`
  }

  protected override bytes(bytes: Buffer): string {
    const text = bytes.toString(this.chance(0.5) ? 'base64' : 'base64url')
    const padded = text.padEnd(Math.ceil(text.length / 4) * 4, '=')
    return this.string(this.chance(0.5) ? padded : text.replaceAll('=', ''))
  }

  protected override enumValue(field: DescField, value: number): string {
    const name = field.enum?.value[value]?.name
    if (name !== undefined && this.chance(0.4)) {
      const short = name.slice(field.enum?.sharedPrefix?.length ?? 0)
      return this.string(this.chance(0.3) ? short : name)
    }
    return this.quoted(this.chance(0.1) ? `${value}.0` : String(value))
  }

  protected override integer(value: number | bigint, _isAttribute: boolean): string {
    let text = String(value)
    if (BigInt(value) === 0n) return this.quoted(this.chance(0.1) ? '-0' : text)
    const zeros = /0*$/.exec(text)?.[0].length ?? 0
    const form = this.random()
    if (form < 0.2 && zeros > 0) text = `${text.slice(0, -zeros)}e+${zeros}`
    else if (form < 0.03) text = `${text}.000`
    else if (form < 0.06) text = `${text}0E-1`
    else if (form < 0.09) text = text.replace(/^(-?\d)(\d+)$/, (_, head, tail) => `${head}.${tail}e${tail.length}`)
    return this.quoted(text)
  }

  protected override double(value: number): string {
    if (!Number.isFinite(value)) return this.string(String(value))
    let text = super.double(value)
    if (value !== 0 && this.chance(0.1)) text = value.toExponential()
    else if (/^-?\d+$/.test(text) && this.chance(0.2)) text = `${text}.0`
    return this.quoted(text)
  }

  private quoted(text: string): string {
    if (this.chance(0.7)) return this.chance(0.5) ? text : `"${text}"`
    return this.chance(0.1) ? this.string(text) : text
  }

  private space(): string {
    return this.chance(0.05) ? (SPACES[this.below(SPACES.length)] as string) : ''
  }

  private chance(probability: number): boolean {
    return this.random() < probability
  }

  private below(limit: number): number {
    return Math.floor(this.random() * limit)
  }
}

function defaultOf(field: DescField): unknown {
  switch (field.fieldKind === 'scalar' ? field.scalar : undefined) {
    case ScalarType.STRING:
      return ''
    case ScalarType.BYTES:
      return new Uint8Array()
    case ScalarType.BOOL:
      return false
    default:
      return 0
  }
}
