/**
 * Script of the document of the player. It passes the port of the console on to the stage: a frame whose document is a `data:`
 * address. Such a document has an opaque origin, so that nothing in it reaches the console, and yet it may look into frames of its
 * own, which a frame that is sandboxed without `allow-same-origin` may not. It inherits the policy of this document, and with it
 * the sandbox.
 */
const script = new URL(document.body.dataset.stage ?? '', location.origin)

/** The stage itself makes no frame but that of the recording, which is empty at first and never loads anything. */
const STAGE_POLICY = "frame-src 'none'; object-src 'none'"

addEventListener('message', function connect({ source, origin, ports }) {
  const [port] = ports
  if (source !== parent || origin !== location.origin || port === undefined) return
  removeEventListener('message', connect)
  const frame = document.createElement('iframe')
  frame.title = 'Recording'
  frame.addEventListener('load', () => frame.contentWindow?.postMessage('connect', '*', [port]), { once: true })
  frame.src = `data:text/html;charset=utf-8,${encodeURIComponent(stageDocument())}`
  document.body.append(frame)
})
parent.postMessage('ready', location.origin)

function stageDocument(): string {
  return [
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Recording</title>',
    `<meta http-equiv="Content-Security-Policy" content="${STAGE_POLICY}">`,
    '<style>html,body{margin:0;height:100%;overflow:hidden;background:transparent}</style></head>',
    `<body><script src="${script.href}"></script></body></html>`,
  ].join('')
}
