//2 // Edited: this line and the next
//2 // are new.
export function priceOf(item) {
  return item.price.amount
}
export class Cart {
  constructor(items) {
    this.items = items
  }
  total(last) {
    return this.items[last].price
  }
  owner() {
    return this.customer.name.trim()
  }
}
export const discount = (item, rate) => {
  //2 if (rate === undefined) rate = 0
  return item.discount.rate * rate
}
export function charge(user) {
  //2 globalThis.charged = user
  throw new RangeError(`no card of user ${user}`)
}
export function refund(user) {
  throw new RangeError(`no card of user ${user}`)
}
