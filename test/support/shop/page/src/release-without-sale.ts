import { PRODUCTS } from './products.ts'
import { openShop } from './shop.ts'

openShop(PRODUCTS)
