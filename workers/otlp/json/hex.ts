/** Values of hex digits in either case. Other bytes have 0x100, so that a pair with one exceeds 0xff. */
const DIGITS = new Uint16Array(256).fill(0x100)
for (const [value, digit] of [...'0123456789abcdef'].entries()) {
  DIGITS[digit.charCodeAt(0)] = value
  DIGITS[digit.toUpperCase().charCodeAt(0)] = value
}

/** Returns the byte of two hex digits, or a number above 0xff if they are not hex digits. */
export function hexValue(first: number, second: number): number {
  return ((DIGITS[first] as number) << 4) | (DIGITS[second] as number)
}
