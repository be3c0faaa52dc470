import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { encodePayload } from '../../shared/queue/payload-frame.ts'

/** Bodies to write, and the way to write them. */
interface SetPlan {
  /** Address of the server with the number of the database. */
  readonly url: string
  /** Bodies of payloads. Each becomes a payload frame like those of the edge. */
  readonly bodies: readonly Buffer[]
  readonly way: SetWay
  readonly warmUpMs: number
  readonly durationMs: number
}

/**
 * Shape of the writes. Every connection has one write in flight, whose payloads are separate values or one joined
 * value.
 */
export interface SetWay {
  readonly connections: number
  readonly payloadsPerWrite: number
  readonly joined: boolean
}

/** Result of the measured window. */
export interface SetResult {
  readonly seconds: number
  /** Payloads confirmed in the measured window. */
  readonly ok: number
  /** CPU time of this process in the window. */
  readonly cpuSeconds: number
}

const ANSWER_BYTES = '+OK\r\n'.length
const MINUS = '-'.charCodeAt(0)

/**
 * Measures the limit of a queue in Redis: SET of the same bytes, without HTTP, jobs or counters. Commands are built
 * beforehand, so that the sender costs almost nothing. Every key is new, as those of the product are: overwriting a value in
 * warm memory is cheaper than storing one.
 */
export async function writeSets(plan: SetPlan, notify: (edge: 'begin' | 'end') => void): Promise<SetResult> {
  const { connections, payloadsPerWrite } = plan.way
  let isMeasured = false
  let ok = 0
  const { promise: failed, reject: fail } = Promise.withResolvers<never>()
  const onAnswered = () => {
    if (isMeasured) ok += payloadsPerWrite
  }
  const sockets = Array.from({ length: connections }, (_, i) =>
    keepWriting(plan.url, makeWrite(plan, i), onAnswered, fail),
  )
  try {
    await Promise.race([delay(plan.warmUpMs), failed])
    notify('begin')
    const startedAt = performance.now()
    const cpu = process.cpuUsage()
    isMeasured = true
    await Promise.race([delay(plan.durationMs), failed])
    isMeasured = false
    const seconds = (performance.now() - startedAt) / 1_000
    const { user, system } = process.cpuUsage(cpu)
    notify('end')
    return { seconds, ok, cpuSeconds: (user + system) / 1e6 }
  } finally {
    for (const socket of sockets) socket.destroy()
  }
}

interface Write {
  readonly bytes: Buffer
  /** Offsets of the digits in `bytes` that make the keys new, one for each command. */
  readonly counters: readonly number[]
}

const COUNTER_DIGITS = 18

/** Builds the bytes that one connection sends repeatedly, with keys as long as the product's. */
function makeWrite({ bodies, way }: SetPlan, connection: number): Write {
  const frames = Array.from({ length: way.payloadsPerWrite }, (_, i) => ({
    workspaceId: 'ws_000000000000000000000000',
    surfaceId: 'srf_000000000000000000000000',
    receivedAtMs: Date.now(),
    contentType: 'application/x-protobuf' as const,
    contentEncoding: 'identity' as const,
    attributes: '',
    body: bodies[(connection + i) % bodies.length] as Buffer,
  }))
  const values = way.joined ? [encodePayload(frames)] : frames.map(frame => encodePayload([frame]))
  const counters: number[] = []
  let length = 0
  const commands = values.map((value, i) => {
    const own = String(connection * 1_000_000 + i).padStart(18, '0')
    const key = `penstock:{traces.0}:payload:${own}${'0'.repeat(COUNTER_DIGITS)}`
    const command = encodeCommand('SET', key, value)
    counters.push(length + command.indexOf(key) + key.length - COUNTER_DIGITS)
    length += command.length
    return command
  })
  return { bytes: Buffer.concat(commands), counters }
}

/** Gives every key of a write this number. */
function renumber({ bytes, counters }: Write, turn: number): void {
  const digits = String(turn).padStart(COUNTER_DIGITS, '0')
  for (const at of counters) bytes.write(digits, at, 'latin1')
}

/** Writes, waits for all responses and writes again, until the socket is destroyed or Redis returns anything but OK. */
function keepWriting(url: string, write: Write, onAnswered: () => void, onFault: (error: Error) => void): Socket {
  const { hostname, port, pathname, username, password } = new URL(url)
  const hello = [
    ...(password === '' ? [] : [encodeCommand('AUTH', username || 'default', password)]),
    encodeCommand('SELECT', pathname.slice(1)),
  ]
  const socket = connect({ host: hostname, port: Number(port), noDelay: true })
  let missingBytes = hello.length * ANSWER_BYTES
  let isSelected = false
  let turn = 0
  socket.on('error', onFault)
  socket.on('connect', () => socket.write(Buffer.concat(hello)))
  socket.on('data', answer => {
    if (answer.includes(MINUS)) return void socket.destroy(new Error(`Redis returned ${answer}`))
    missingBytes -= answer.length
    if (missingBytes > 0) return
    if (isSelected) onAnswered()
    isSelected = true
    missingBytes = write.counters.length * ANSWER_BYTES
    renumber(write, turn++)
    socket.write(write.bytes)
  })
  return socket
}

/** Encodes a command as a RESP array of bulk strings. */
function encodeCommand(...parts: readonly (string | Buffer)[]): Buffer {
  const bulk = parts.flatMap(part => [
    Buffer.from(`$${Buffer.byteLength(part)}\r\n`),
    Buffer.from(part),
    Buffer.from('\r\n'),
  ])
  return Buffer.concat([Buffer.from(`*${parts.length}\r\n`), ...bulk])
}
