/** Plays events to the end; resolves with how many were played, and what the last page shows then. */
globalThis.playToTheEnd = events =>
  new Promise(resolve => {
    let played = 0
    const replayer = new rrweb.Replayer(events, {
      root: document.body,
      speed: 8,
      skipInactive: true,
      showWarning: true,
    })
    replayer.on('event-cast', () => {
      played++
    })
    replayer.on('finish', () => {
      const shown = replayer.iframe.contentDocument
      resolve({
        played,
        text: shown.querySelector('main').textContent,
        values: [...shown.querySelectorAll('input, textarea, select')].map(({ value }) => value),
      })
    })
    replayer.play()
  })
