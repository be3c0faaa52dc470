import { readCoupon } from './coupon.ts'
import { format, type Line, totalOf } from './money.ts'
import type { Product } from './products.ts'

const find = <E extends HTMLElement>(selector: string): E => document.querySelector(selector) as E

/** Shows products and a cart, and sells them. */
export function openShop(products: readonly Product[]): void {
  const cart: Product[] = []
  for (const product of products) {
    const button = document.createElement('button')
    button.textContent = `Add ${product.label}`
    button.addEventListener('click', () => addToCart(cart, product))
    find('#products').append(button)
  }
  find('#coupon').addEventListener('submit', event => {
    event.preventDefault()
    try {
      find('#total').textContent = `Coupon ${readCoupon(find<HTMLInputElement>('#coupon input').value)} applied.`
    } catch (error) {
      report(error as Error, 'This coupon could not be read.')
    }
  })
  find('#checkout').addEventListener('submit', async event => {
    event.preventDefault()
    try {
      await submitOrder(cart)
    } catch (error) {
      report(error as Error, 'Something went wrong. Your card was not charged.')
    }
  })
}

function addToCart(cart: Product[], product: Product): void {
  cart.push(product)
  const line = document.createElement('li')
  line.textContent = product.name
  find('#cart').append(line)
  console.log('added', product.sku)
}

async function submitOrder(cart: readonly Product[]): Promise<void> {
  const body = JSON.stringify(cart.map(({ sku }) => sku))
  const response = await fetch('/api/quote', { method: 'POST', body })
  const lines: readonly Line[] = await response.json()
  const total = totalOf(lines)
  find('#total').textContent = `Thank you. Your order of ${format(total)} is on its way.`
}

/** Shows a failure, and keeps it as an SDK would send it. */
function report({ name, message, stack }: Error, shown: string): void {
  console.error(`${name}: ${message}`)
  find('[role=alert]').textContent = shown
  Object.assign(globalThis, { failure: { type: name, message, stack, at: Date.now() } })
}
