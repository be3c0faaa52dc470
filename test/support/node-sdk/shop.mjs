import { trace } from '@opentelemetry/api'
import express from 'express'
import { pino } from 'pino'
import winston from 'winston'

/** An application without a word about telemetry but one span of its own. It answers three requests and ends by itself. */
const pinoLogger = pino()
const winstonLogger = winston.createLogger({ transports: [new winston.transports.Console()] })

const app = express()
app.get('/items/:id', (_request, response) => {
  pinoLogger.info({ item: 17 }, 'pino loads the item')
  winstonLogger.warn('winston finds it old')
  console.error('the console has an error of %s', 'its own')
  response.send('ok')
})
app.get('/fail', () => {
  const error = new TypeError('cannot price the item', { cause: new RangeError('amount 17 is out of range') })
  trace.getActiveSpan()?.recordException(error)
  pinoLogger.error(error, 'pino reports')
  winstonLogger.error('winston reports', { error })
  throw error
})

const server = app.listen(0, '127.0.0.1', async () => {
  const { port } = server.address()
  const tracer = trace.getTracer('shop')
  await tracer.startActiveSpan('visit', async span => {
    await fetch(`http://127.0.0.1:${port}/items/17`)
    await fetch(`http://127.0.0.1:${port}/fail`)
    span.end()
  })
  server.close()
  server.closeAllConnections()
})
