import type { Product } from './products.ts'

const SALE: Product = { sku: 'C-4', name: 'Cup', label: 'Cup, on sale' }

/** Adds what is on sale since 2.4.0. */
export function withSale(products: readonly Product[]): readonly Product[] {
  return [...products, SALE]
}
