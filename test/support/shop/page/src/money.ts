/** An amount in the smallest unit of its currency. */
interface Price {
  readonly cents: number
  readonly currency: string
}

/** A line of a quote. */
export interface Line {
  readonly sku: string
  readonly name: string
  readonly quantity: number
  readonly price: Price
}

/** Formats a price for people. */
export function format({ cents, currency }: Price): string {
  return new Intl.NumberFormat('en', { style: 'currency', currency }).format(cents / 100)
}

/** Adds up the lines of a quote. */
export function totalOf(lines: readonly Line[]): Price {
  let cents = 0
  for (const line of lines) {
    cents += line.quantity * line.price.cents
  }
  return { cents, currency: 'EUR' }
}
