/** Returns a table with 1 for the bytes of these ASCII characters. */
function tableOf(characters: RegExp, beyondAscii: 0 | 1): Uint8Array {
  return Uint8Array.from({ length: 256 }, (_, byte) =>
    byte >= 0x80 ? beyondAscii : Number(characters.test(String.fromCharCode(byte))),
  )
}

/** Letters, digits, and the bytes of other alphabets. */
export const ALPHANUMERIC = tableOf(/[0-9A-Za-z]/, 1)
/** Letters, and the bytes of other alphabets. */
export const LETTER = tableOf(/[A-Za-z]/, 1)
/** Bytes of base64url. */
export const BASE64URL = tableOf(/[0-9A-Za-z_-]/, 0)
/** Bytes of the part of an e-mail address before the at sign, as people and forms write it. */
export const LOCAL_PART = tableOf(/[0-9A-Za-z._%+'-]/, 1)
/** Bytes of the name of a host. */
export const HOST = tableOf(/[0-9A-Za-z.-]/, 1)
/** Bytes of the name of a parameter. */
export const PARAMETER_NAME = tableOf(/[0-9A-Za-z._~-]/, 1)
/** Bytes that end the value of a parameter: blanks, quotes, and what separates parameters. */
export const ENDS_VALUE = tableOf(/[\0-\x20"'<>\\`&#;]/, 0)
/** Bytes that end the part of a URL with user and host. */
export const ENDS_AUTHORITY = tableOf(/[\0-\x20"'<>\\`/?#]/, 0)

/** Returns whether a byte is a digit. */
export const isDigit = (byte: number | undefined): boolean => byte !== undefined && byte >= 0x30 && byte <= 0x39

/** Returns whether the bytes at `at` are `%` and these two hexadecimal digits, of which the second may be a lower-case letter. */
export function isEncoded(bytes: Uint8Array, at: number, first: number, second: number): boolean {
  return bytes[at] === 0x25 && bytes[at + 1] === first && ((bytes[at + 2] as number) & ~0x20) === (second & ~0x20)
}
