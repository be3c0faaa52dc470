import { init } from '../../../../../packages/browser/src/index.ts'

/** Records the page as an application does. The script that opened it takes what is sent. */
const penstock = init({ url: '/telemetry', key: 'pk_shop', service: 'shop-web', recording: { sample: 1 } })
Object.assign(globalThis, { penstock })
