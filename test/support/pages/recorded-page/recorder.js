/* Records the page with rrweb and uploads it, as an SDK would: see spec 4.1 to 4.3. A copy of all stays in sessionStorage. */
globalThis.recorder = (() => {
  const EVENTS_PER_CHUNK = 20
  const { ingestUrl, publicKey, sessionId, deviceId, visitorId } = settings
  const kept = sessionStorage
  kept.windowId ??= crypto.randomUUID()
  const { windowId } = kept

  const isPacked = new URLSearchParams(location.search).has('packed')
  const toLine = event => `${JSON.stringify(isPacked ? rrwebPacker.pack(event) : event)}\n`

  let waiting = []
  let leaving = false
  const unacknowledged = new Map()

  function append(list, value) {
    kept[list] = `${kept[list] ?? ''}${JSON.stringify(value)}\n`
  }

  function record(event) {
    // The packer adds its version.
    append('events', isPacked ? { ...event, v: 'v1' } : event)
    waiting.push(event)
    if (waiting.length >= EVENTS_PER_CHUNK) void upload(cutChunk())
  }

  function cutChunk() {
    const events = waiting
    waiting = []
    const segmentId = Number(kept.nextSegment ?? 0)
    kept.nextSegment = segmentId + 1
    const times = events.map(({ timestamp }) => timestamp)
    const metadata = {
      windowId,
      segmentId,
      firstTs: Math.min(...times),
      lastTs: Math.max(...times),
      eventCount: events.length,
      hasFullSnapshot: events.some(({ type }) => type === 2),
      activityCount: events.filter(({ type }) => type === 3).length,
    }
    const jsonLines = events.map(toLine).join('')
    const chunk = { segmentId, metadata: btoa(JSON.stringify(metadata)), jsonLines }
    unacknowledged.set(segmentId, chunk)
    return chunk
  }

  function address(query) {
    const search = query ? `?${new URLSearchParams({ public_key: publicKey, ...query })}` : ''
    return `${ingestUrl}/v3/replay/upload/${encodeURIComponent(sessionId)}${search}`
  }

  /** While the page lives: gzipped, with headers of its own. */
  async function upload(chunk) {
    const gzip = new Blob([chunk.jsonLines]).stream().pipeThrough(new CompressionStream('gzip'))
    try {
      const response = await fetch(address(), {
        method: 'POST',
        headers: {
          'content-type': 'application/octet-stream',
          'content-encoding': 'gzip',
          'x-service-public-key': publicKey,
          'x-replay-metadata': chunk.metadata,
        },
        body: await new Response(gzip).arrayBuffer(),
      })
      const { objectKey } = await response.json()
      unacknowledged.delete(chunk.segmentId)
      append('acknowledged', { segmentId: chunk.segmentId, status: response.status, objectKey })
    } catch (error) {
      if (!leaving) append('faults', `segment ${chunk.segmentId}: ${error}`)
    }
  }

  /** A closing page has no time to compress. Chunks without a confirmation are sent again. */
  function uploadLast({ segmentId, metadata, jsonLines }) {
    const body = new Blob([jsonLines], { type: 'application/octet-stream' })
    if (document.documentElement.dataset.leavesBy === 'beacon') {
      if (!navigator.sendBeacon(address({ metadata }), body)) append('faults', `segment ${segmentId}: no beacon`)
    } else {
      void fetch(address({ metadata }), { method: 'POST', keepalive: true, body })
    }
    append('last', segmentId)
  }

  async function identify(name, email) {
    const response = await fetch(`${ingestUrl}/v3/session/identify`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-service-public-key': publicKey },
      body: JSON.stringify({
        sessionId,
        deviceId,
        visitorId,
        identifier: email,
        source: { type: 'custom', name: 'Shop' },
        name,
        email,
        traits: { plan: 'gold', seats: 3 },
      }),
    })
    if (!response.ok) append('faults', `identify: ${response.status}`)
  }

  function heartbeat() {
    const body = JSON.stringify({ sessionId, deviceId, visitorId })
    const query = new URLSearchParams({ public_key: publicKey })
    if (!navigator.sendBeacon(`${ingestUrl}/v3/session?${query}`, body)) append('faults', 'heartbeat: no beacon')
  }

  heartbeat()
  const stop = rrweb.record({ emit: record, recordCanvas: false, sampling: { scroll: 50 } })
  addEventListener('pagehide', () => {
    leaving = true
    rrweb.record.addCustomEvent('page left', { path: location.pathname })
    stop()
    if (waiting.length > 0) cutChunk()
    for (const chunk of unacknowledged.values()) uploadLast(chunk)
  })
  return { identify }
})()
