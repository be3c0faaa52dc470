import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'

/** Direction of bytes, as a client sees it. */
type Direction = 'requests' | 'responses'

/** Latency and bandwidth of a slow network, for each direction of a connection. */
interface SlowNetwork {
  readonly latencyMs: number
  readonly bytesPerSecond: number
}

/** Connections that a proxy carries. */
interface Link {
  readonly client: Socket
  readonly upstream: Socket
  /** Whether the network has forgotten the connection, which neither end learns. */
  isForgotten: boolean
}

/**
 * A network between clients and one server, whose faults a test decides: it is slow, it is cut, or it holds what it is given
 * in one direction or both, as a network does between the loss of packets and their repetition.
 */
export class FaultProxy {
  readonly #server: Server
  readonly #links = new Set<Link>()
  #targetPort: number
  #slow: SlowNetwork | undefined
  #isCut = false
  /** Resolve when the direction carries bytes again. */
  readonly #held = new Map<Direction, PromiseWithResolvers<void>>()

  private constructor(targetPort: number) {
    this.#targetPort = targetPort
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, client => this.#accept(client))
  }

  /** Starts a proxy before a port of this machine. */
  static async start(targetPort: number): Promise<FaultProxy> {
    const proxy = new FaultProxy(targetPort)
    proxy.#server.listen(0, '127.0.0.1')
    await once(proxy.#server, 'listening')
    return proxy
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** Returns a URL of the target with the port of the proxy. */
  before(url: string): string {
    const proxied = new URL(url)
    proxied.port = String(this.port)
    // A URL object adds a slash to an address without a path.
    return url.endsWith('/') ? proxied.href : proxied.href.replace(/\/$/, '')
  }

  /** Leads further connections to another port, and resets the present ones. */
  retarget(port: number): void {
    this.#targetPort = port
    this.#reset()
  }

  slow(network: SlowNetwork): void {
    this.#slow = network
  }

  /** Resets all connections, and further ones at once. */
  cut(): void {
    this.#isCut = true
    this.#reset()
  }

  /** Carries no byte and no end of a connection in these directions until `heal`. */
  hold(...directions: Direction[]): void {
    for (const direction of directions) this.#held.set(direction, Promise.withResolvers())
  }

  /**
   * Carries nothing more of the present connections, for ever, and closes none, as when an end gets another address or a gateway
   * loses its table. New connections are carried.
   */
  forget(): void {
    for (const link of this.#links) link.isForgotten = true
  }

  /** Ends all faults. Held bytes are delivered, unless `loses` resets its connections. */
  heal(loses = false): void {
    this.#slow = undefined
    this.#isCut = false
    if (loses) this.#reset()
    for (const { resolve } of this.#held.values()) resolve()
    this.#held.clear()
  }

  async close(): Promise<void> {
    this.#isCut = true
    this.#reset()
    this.heal()
    this.#server.close()
    await once(this.#server, 'close')
  }

  #accept(client: Socket): void {
    if (this.#isCut) {
      client.on('error', () => {})
      client.resetAndDestroy()
      return
    }
    const upstream = connect({ port: this.#targetPort, host: '127.0.0.1', allowHalfOpen: true, noDelay: true })
    const link: Link = { client, upstream, isForgotten: false }
    this.#links.add(link)
    this.#carry(link, 'requests')
    this.#carry(link, 'responses')
  }

  #carry(link: Link, direction: Direction): void {
    const [from, to] = direction === 'requests' ? [link.client, link.upstream] : [link.upstream, link.client]
    from.on('data', chunk => {
      if (link.isForgotten) return
      if (this.#slow === undefined && !this.#held.has(direction)) {
        if (!to.write(chunk)) {
          from.pause()
          to.once('drain', () => from.resume())
        }
        return
      }
      from.pause()
      void this.#pass(direction, chunk.length).then(() => {
        if (!to.destroyed && !link.isForgotten) to.write(chunk)
        from.resume()
      })
    })
    from.once('end', () => void this.#pass(direction, 0).then(() => link.isForgotten || to.end()))
    from.on('error', () => {})
    from.once('close', () => void this.#pass(direction, 0).then(() => link.isForgotten || this.#destroy(link)))
  }

  /** Resolves when the network has carried this many bytes. */
  async #pass(direction: Direction, bytes: number): Promise<void> {
    if (this.#slow !== undefined && bytes > 0) {
      await delay(this.#slow.latencyMs + (1_000 * bytes) / this.#slow.bytesPerSecond)
    }
    await this.#held.get(direction)?.promise
  }

  #destroy(link: Link): void {
    this.#links.delete(link)
    link.client.destroy()
    link.upstream.destroy()
  }

  #reset(): void {
    for (const { client, upstream } of this.#links) {
      client.resetAndDestroy()
      upstream.resetAndDestroy()
    }
    this.#links.clear()
  }
}
