import type { PageBuilder, StagedNode } from '../staged-recording.ts'

/** What an attack is made of. */
export interface Means {
  readonly b: PageBuilder
  /** Address of the trap. */
  readonly url: string
  readonly socketUrl: string
  /** A script that shows that it runs, in every way that it has. */
  readonly script: string
}

/** A hostile page. Its nodes are recorded in a snapshot, and once more as a mutation of an innocent page. */
interface HostilePage {
  readonly name: string
  readonly isHead?: boolean
  readonly nodes: (means: Means) => readonly StagedNode[]
}

const SVG = { isSVG: true }
const one = (name: string, nodes: (means: Means) => readonly StagedNode[], isHead = false): HostilePage => ({
  name,
  nodes,
  isHead,
})
const attribute = (name: string, tag: string, attributes: (means: Means) => object, more: object = {}) =>
  one(name, means => [means.b.element(tag, attributes(means), [], more)])
const link = (rel: string, more: object = {}) =>
  one(
    `link ${rel} ${Object.values(more).join(' ')}`.trim(),
    ({ b, url }) => [b.element('link', { rel, href: url, ...more })],
    true,
  )
const style = (name: string, css: (url: string) => string) =>
  one(`style ${name}`, ({ b, url }) => [
    b.element('style', {}, [b.text(css(url), { isStyle: true })]),
    b.element('div', { class: 'target' }, [b.text('target')]),
  ])
const html = (script: string) => `<script>${script}</script><img src=x onerror="${script.replaceAll('"', '&quot;')}">`

/** Pages that try to run a script. */
const SCRIPTS: readonly HostilePage[] = [
  one('script', ({ b, script }) => [b.element('script', {}, [b.text(script)])]),
  attribute('script src', 'script', ({ url }) => ({ src: url })),
  one('module script', ({ b, script }) => [b.element('script', { type: 'module' }, [b.text(script)])]),
  one('import map and speculation rules', ({ b, url }) => [
    b.element('script', { type: 'importmap' }, [b.text(JSON.stringify({ imports: { a: url } }))]),
    b.element('script', { type: 'speculationrules' }, [
      b.text(JSON.stringify({ prefetch: [{ urls: [url], eagerness: 'immediate' }] })),
    ]),
  ]),
  attribute('img onerror', 'img', ({ script }) => ({ src: 'data:,x', onerror: script, ONERROR: script })),
  attribute('body events', 'div', ({ script }) => ({
    onload: script,
    onclick: script,
    onpointerover: script,
    onanimationstart: script,
    style: 'animation: spin 1s; width: 900px; height: 500px',
  })),
  attribute('input onfocus autofocus', 'input', ({ script }) => ({ autofocus: true, onfocus: script })),
  attribute('details ontoggle', 'details', ({ script }) => ({ open: true, ontoggle: script })),
  attribute('marquee onstart', 'marquee', ({ script }) => ({ onstart: script })),
  one('javascript: links', ({ b, script }) => [
    b.element('a', { href: `javascript:${script}`, style: 'display: block; height: 300px' }, [b.text('click')]),
    b.element('a', { href: `java\tscript:${script}` }, [b.text('click')]),
    b.element('a', { href: ` \u0001JAVASCRIPT:${script}` }, [b.text('click')]),
  ]),
  attribute('javascript: in a frame', 'iframe', ({ script }) => ({ src: `javascript:${script}` })),
  attribute('javascript: in embed', 'embed', ({ script }) => ({ src: `javascript:${script}` })),
  one('javascript: in a form', ({ b, script }) => [
    b.element('form', { action: `javascript:${script}` }, [
      b.element('button', { formaction: `javascript:${script}`, type: 'submit' }, [b.text('send')]),
    ]),
  ]),
  one('svg script', ({ b, script }) => [
    b.element('svg', { onload: script }, [b.element('script', {}, [b.text(script)], SVG)], SVG),
  ]),
  one('svg animates an address', ({ b, script }) => [
    b.element(
      'svg',
      {},
      [
        b.element(
          'a',
          { 'xlink:href': `javascript:${script}` },
          [
            b.element('animate', { attributeName: 'href', to: `javascript:${script}`, begin: '0s' }, [], SVG),
            b.element('set', { attributeName: 'onmouseover', to: script }, [], SVG),
          ],
          SVG,
        ),
      ],
      SVG,
    ),
  ]),
  attribute('iframe srcdoc', 'iframe', ({ script }) => ({ srcdoc: html(script) })),
  attribute('iframe data:', 'iframe', ({ script }) => ({ src: `data:text/html,${encodeURIComponent(html(script))}` })),
  attribute('object data:', 'object', ({ script }) => ({
    data: `data:text/html,${encodeURIComponent(html(script))}`,
    type: 'text/html',
  })),
  attribute('image of svg with script', 'img', ({ script }) => ({
    src: `data:image/svg+xml,${encodeURIComponent(`<svg xmlns="http://www.w3.org/2000/svg" onload="${script}"><script>${script}</script></svg>`)}`,
  })),
  one('custom element', ({ b, script }) => [
    b.element('x-attack', { is: 'x-attack', onload: script }, [], { isCustom: true }),
    b.element('button', { is: 'x-other', onclick: script }),
  ]),
  one('template and noscript', ({ b, script }) => [
    b.element('template', {}, [b.element('script', {}, [b.text(script)])]),
    b.element('noscript', {}, [b.text(html(script))]),
    b.element('textarea', { value: `</textarea>${html(script)}` }),
    b.element('xmp', {}, [b.text(`</xmp>${html(script)}`)]),
  ]),
  one('shadow root', ({ b, script, url }) => [
    b.element(
      'div',
      {},
      [
        b.element('script', {}, [b.text(script)], { isShadow: true }),
        b.element('img', { src: url, onerror: script }, [], { isShadow: true }),
      ],
      { isShadowHost: true },
    ),
  ]),
  one('dialog', ({ b, script }) => [
    b.element('dialog', { open: true, rr_open_mode: 'modal', oncancel: script, onbeforetoggle: script }, [
      b.text('dialog'),
    ]),
    b.element('div', { popover: 'auto', ontoggle: script }),
  ]),
]

/** Pages that try to make the browser of the viewer connect to a server. */
const REQUESTS: readonly HostilePage[] = [
  one('meta refresh', ({ b, url }) => [b.element('meta', { 'http-equiv': 'refresh', content: `0;url=${url}` })], true),
  one(
    'base',
    ({ b, url }) => [b.element('base', { href: url, target: '_top' }), b.element('img', { src: 'relative.png' })],
    true,
  ),
  one('names of hosts are looked up', ({ b, url }) => [
    b.element('meta', { 'http-equiv': 'x-dns-prefetch-control', content: 'on' }),
    b.element('link', { rel: 'dns-prefetch', href: url }),
    b.element('a', { href: url }, [b.text('link')]),
  ]),
  link('preconnect'),
  link('PreConnect', { crossorigin: '' }),
  link('preload', { as: 'image' }),
  link('preload', { as: 'fetch', crossorigin: '' }),
  link('modulepreload'),
  link('prefetch'),
  link('prerender'),
  link('stylesheet'),
  link('alternate stylesheet', { title: 'other' }),
  link('icon'),
  link('manifest'),
  one('link with recorded styles', ({ b, url }) => [
    b.element('link', {
      rel: 'stylesheet',
      href: url,
      _cssText: `@import "${url}"; .target { background: url(${url}) }`,
    }),
    b.element('div', { class: 'target' }, [b.text('target')]),
  ]),
  style('@import', url => `@import url("${url}"); @import "${url}?2" layer(a);`),
  style('background', url => `.target { background: url(${url}); list-style-image: url(${url}?2) }`),
  style('font', url => `@font-face { font-family: f; src: url(${url}) } .target { font: 20px f }`),
  style(
    'image-set, cursor, content',
    url =>
      `.target { cursor: url(${url}), auto; background: image-set("${url}?2" 1x) } .target::before { content: url(${url}?3) }`,
  ),
  style(
    'filter, mask, clip',
    url =>
      `.target { filter: url(${url}#a); mask: url(${url}?2#a); clip-path: url(${url}?3#a); shape-outside: url(${url}?4) }`,
  ),
  attribute('style attribute', 'div', ({ url }) => ({ style: `background: url("${url}")` })),
  attribute('img', 'img', ({ url }) => ({ src: url, srcset: `${url}?2 1x, ${url}?3 2x`, attributionsrc: url })),
  one('picture', ({ b, url }) => [
    b.element('picture', {}, [
      b.element('source', { srcset: url }),
      b.element('img', { src: `${url}?2`, loading: 'eager' }),
    ]),
  ]),
  one('video, audio, track', ({ b, url }) => [
    b.element('video', { src: url, poster: `${url}?2`, autoplay: true, preload: 'auto', rr_mediaState: 'played' }, [
      b.element('track', { src: `${url}?3`, kind: 'subtitles', default: true }),
    ]),
    b.element('audio', { src: `${url}?4`, preload: 'auto', controls: true }),
  ]),
  attribute('input image', 'input', ({ url }) => ({ type: 'image', src: url })),
  attribute('body background', 'table', ({ url }) => ({ background: url })),
  attribute('iframe', 'iframe', ({ url }) => ({ src: url, loading: 'eager' })),
  attribute('frame with referrer', 'frame', ({ url }) => ({ src: url, referrerpolicy: 'unsafe-url' })),
  attribute('object', 'object', ({ url }) => ({ data: url, type: 'image/png' })),
  attribute('embed', 'embed', ({ url }) => ({ src: url, type: 'application/pdf' })),
  attribute('fenced frame and portal', 'fencedframe', ({ url }) => ({ src: url })),
  one('svg images and references', ({ b, url }) => [
    b.element(
      'svg',
      {},
      [
        b.element('image', { href: url, 'xlink:href': `${url}?2` }, [], SVG),
        b.element('use', { href: `${url}?3#a`, 'xlink:href': `${url}?4#a` }, [], SVG),
        b.element('filter', {}, [b.element('feImage', { href: `${url}?5` }, [], SVG)], SVG),
      ],
      SVG,
    ),
  ]),
  one('links that are clicked', ({ b, url }) => [
    b.element(
      'a',
      { href: url, ping: `${url}?2`, target: '_top', style: 'position: fixed; inset: 0; display: block' },
      [b.text('click me')],
    ),
  ]),
  one('links to other windows', ({ b, url }) => [
    b.element('a', { href: url, target: '_blank', download: 'x', style: 'position: fixed; inset: 0; display: block' }, [
      b.text('click me'),
    ]),
  ]),
  one('form', ({ b, url }) => [
    b.element('form', { action: url, method: 'post', target: '_top' }, [
      b.element('input', { name: 'secret', value: 'a', autofocus: true }),
      b.element('button', { type: 'submit', formaction: `${url}?2`, style: 'position: fixed; inset: 0' }, [
        b.text('send'),
      ]),
    ]),
  ]),
  one('web socket', ({ b, socketUrl }) => [
    b.element('iframe', { src: socketUrl }),
    b.element('img', { src: socketUrl }),
  ]),
]

/** All hostile pages. */
export const HOSTILE_PAGES: readonly HostilePage[] = [...SCRIPTS, ...REQUESTS]
