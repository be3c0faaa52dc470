/** A product of the shop. Its price is part of a quote. */
export interface Product {
  readonly sku: string
  readonly name: string
  readonly label: string
}

export const PRODUCTS: readonly Product[] = [
  { sku: 'K-1', name: 'Kettle', label: 'Kettle, 49.00 €' },
  { sku: 'T-2', name: 'Green tea', label: 'Green tea, 250 g, 12.50 €' },
  { sku: 'P-3', name: 'Teapot', label: 'Teapot, 31.00 €' },
]
