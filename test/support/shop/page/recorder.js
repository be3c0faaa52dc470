/* Records the page with rrweb as an SDK does, and keeps the events for the script that opened it. */
globalThis.recorded = []

/** Writes lines of the console with the name and the shape of the plugin of rrweb. */
const consolePlugin = {
  name: 'rrweb/console@1',
  observer(emit, win) {
    for (const level of ['log', 'error']) {
      const original = win.console[level].bind(win.console)
      win.console[level] = (...parts) => {
        original(...parts)
        emit({ level, trace: [], payload: parts.map(part => JSON.stringify(String(part))) })
      }
    }
    return () => {}
  },
}

/** Writes requests with the name and the shape of the plugin of rrweb. */
const networkPlugin = {
  name: 'rrweb/network@1',
  observer(emit, win) {
    const original = win.fetch.bind(win)
    win.fetch = async (url, options = {}) => {
      const response = await original(url, options)
      emit({ requests: [{ method: options.method ?? 'GET', name: response.url, status: response.status }] })
      return response
    }
    return () => {}
  },
}

rrweb.record({
  emit: event => recorded.push(event),
  checkoutEveryNms: 15_000,
  maskInputOptions: { password: true, tel: true },
  sampling: { mousemove: 100, scroll: 150 },
  plugins: [consolePlugin, networkPlugin],
})
