/** Reads the code of a coupon, which links have percent-encoded. */
export function readCoupon(text: string): string {
  const code = decodeURIComponent(text.trim())
  return code.toUpperCase()
}
