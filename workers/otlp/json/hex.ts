/** The value of a hex digit in either case; 0x100 for any other byte, so that what two make is then over 0xff. */
const DIGITS = new Uint16Array(256).fill(0x100)
for (const [value, digit] of [...'0123456789abcdef'].entries()) {
  DIGITS[digit.charCodeAt(0)] = value
  DIGITS[digit.toUpperCase().charCodeAt(0)] = value
}

/** The byte that two hex digits make; over 0xff if they are not hex digits. */
export function hexValue(first: number, second: number): number {
  return ((DIGITS[first] as number) << 4) | (DIGITS[second] as number)
}
