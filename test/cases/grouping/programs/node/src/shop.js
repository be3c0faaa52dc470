import { readFile } from 'node:fs/promises'
import axios from 'axios'
import pg from 'pg'

export class Declined extends Error {
  name = 'Declined'
}

//2 // Edited:
//2 // two lines more.
export class Cart {
  items = []
  owner = undefined
  total(last) {
    return this.items[last].price
  }
  get size() {
    return this.owner.size
  }
  get length() {
    return this.owner.size
  }
  static ownerName(cart) {
    return cart.owner.name
  }
  #hidden() {
    return this.owner.name
  }
  hidden() {
    return this.#hidden()
  }
}

export class Order {
  items = []
  total(last) {
    return this.items[last].price
  }
}

export function ownerMail(cart) {
  //2 // Edited.
  return cart.owner.mail
}
export const ownerCity = cart => cart.owner.city
export function charge(user) {
  throw new Declined(`no card of user ${user}`)
}
export function refund(user) {
  throw new Declined(`no card of user ${user}`)
}
export async function readOrder(path) {
  return await readFile(path)
}
export async function readCart(path) {
  return await readFile(path)
}
export async function fetchRates(url) {
  return await fetch(url)
}
export async function fetchStock(url) {
  return await fetch(url)
}
export async function axiosRates(url) {
  return await axios.get(url)
}
export async function axiosStock(url) {
  return await axios.get(url)
}
export async function queryOrders(port) {
  const client = new pg.Client({ host: '127.0.0.1', port })
  await client.connect()
}
export async function queryUsers(port) {
  const client = new pg.Client({ host: '127.0.0.1', port })
  await client.connect()
}
export function parseOrder(text) {
  return JSON.parse(text)
}
export function parseCart(text) {
  return JSON.parse(text)
}
export function checkout(kind) {
  try {
    return kind === 'json' ? parseOrder('{no}') : ownerMail({})
  } catch (cause) {
    throw new Declined('the checkout failed', { cause })
  }
}
export async function both(first, second) {
  return await Promise.any([first(), second()])
}
export async function loadPrice(item) {
  await null
  return item.price.amount
}
export async function loadCount(item) {
  await null
  return item.price.amount
}
export function walk(cart, depth) {
  return depth === 0 ? cart.owner.name : walk(cart, depth - 1)
}
export function endless(n) {
  return endless(n + 1) + 1
}
export function endlessToo(n) {
  return endlessToo(n + 1) + 1
}
export const sum = prices => prices.map(price => price.amount.value).length
export const max = prices => prices.map(price => price.amount.value).at(0)
export async function retry(attempts) {
  for (let attempt = 1; ; attempt++) {
    try {
      return await loadPrice({})
    } catch (error) {
      if (attempt === attempts) throw error
    }
  }
}
export function later(callback) {
  return new Promise((_resolve, reject) => {
    setTimeout(() => {
      try {
        callback()
      } catch (error) {
        reject(error)
      }
    }, 1)
  })
}
