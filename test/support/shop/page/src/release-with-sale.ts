import { PRODUCTS } from './products.ts'
import { withSale } from './sale.ts'
import { openShop } from './shop.ts'

openShop(withSale(PRODUCTS))
