import { incremental, mutation, RawLine, type StagedEvent, type StagedNode } from '../staged-recording.ts'
import type { Means } from './pages.ts'

/** Hostile events after an innocent snapshot. */
export interface HostileEvents {
  readonly name: string
  /** `bodyId` and `targetId` are nodes of the snapshot: its body, and a paragraph in it. */
  readonly events: (
    at: number,
    means: Means & { readonly bodyId: number; readonly targetId: number; readonly styleId: number },
  ) => readonly unknown[]
}

const add = (at: number, parentId: number, node: StagedNode) =>
  mutation(at, { adds: [{ parentId, nextId: null, node }] })
/** Returns a mutation that adds elements within each other. */
function deepTree(at: number, parentId: number, levels: number): RawLine {
  const begin = '{"type":2,"tagName":"div","attributes":{},"id":900000,"childNodes":['
  const tree = begin.repeat(levels) + ']}'.repeat(levels)
  const add = `{"parentId":${parentId},"nextId":null,"node":${tree}}`
  return new RawLine(
    `{"type":3,"timestamp":${at},"data":{"source":0,"adds":[${add}],"removes":[],"texts":[],"attributes":[]}}`,
  )
}

/** Events that try to run a script, to connect, or to end the page. */
export const HOSTILE_EVENTS: readonly HostileEvents[] = [
  {
    name: 'attributes that change',
    events: (at, { url, script, targetId, bodyId }) => [
      mutation(at, {
        attributes: [
          { id: targetId, attributes: { onclick: script, onmouseover: script, style: `background: url(${url})` } },
          {
            id: targetId,
            attributes: { style: { background: [`url(${url}?2)`, 'important'], '--x': `url(${url}?3)` } },
          },
          { id: bodyId, attributes: { onload: script, background: url, onpageshow: script } },
        ],
      }),
    ],
  },
  {
    name: 'a link that gets its address later',
    events: (at, { b, url, bodyId }) => {
      const link = b.element('link')
      return [
        add(at, bodyId, link),
        mutation(at + 1, {
          attributes: [
            { id: link.id, attributes: { href: url } },
            { id: link.id, attributes: { rel: 'preconnect' } },
          ],
        }),
        mutation(at + 2, { attributes: [{ id: link.id, attributes: { REL: 'dns-prefetch', rel: 'stylesheet' } }] }),
        mutation(at + 3, {
          attributes: [{ id: link.id, attributes: { rel: 'preload', as: 'image', _cssText: `@import "${url}?2"` } }],
        }),
      ]
    },
  },
  {
    name: 'a frame that gets its address later',
    events: (at, { b, url, script, bodyId }) => {
      const frame = b.element('iframe')
      return [
        add(at, bodyId, frame),
        mutation(at + 1, { attributes: [{ id: frame.id, attributes: { src: url } }] }),
        mutation(at + 2, {
          attributes: [
            {
              id: frame.id,
              attributes: { srcdoc: `<script>${script}</script>`, sandbox: 'allow-scripts allow-same-origin' },
            },
          ],
        }),
        mutation(at + 3, { attributes: [{ id: frame.id, attributes: { src: `javascript:${script}` } }] }),
        mutation(at + 4, {
          attributes: [
            { id: frame.id, attributes: { src: `data:text/html,<script>${encodeURIComponent(script)}</script>` } },
          ],
        }),
      ]
    },
  },
  {
    name: 'the document of a frame',
    events: (at, { b, url, script, bodyId }) => {
      const frame = b.element('iframe')
      const inner = b.page(
        [b.element('meta', { 'http-equiv': 'refresh', content: `0;url=${url}` })],
        [b.element('script', {}, [b.text(script)]), b.element('img', { src: url, onerror: script })],
      )
      return [
        add(at, bodyId, frame),
        mutation(at + 1, { isAttachIframe: true, adds: [{ parentId: frame.id, nextId: null, node: inner }] }),
      ]
    },
  },
  {
    name: 'rules of styles',
    events: (at, { url, styleId }) => [
      incremental(at, 8, {
        id: styleId,
        adds: [{ rule: `p { background: url(${url}) }` }, { rule: `@import "${url}?2"`, index: 0 }],
      }),
      incremental(at + 1, 13, {
        id: styleId,
        index: [0],
        set: { property: 'background', value: `url(${url}?3)`, priority: 'important' },
      }),
      incremental(at + 2, 8, {
        id: styleId,
        replaceSync: `@import url(${url}?4)`,
        replace: `p { background: url(${url}?5) }`,
      }),
    ],
  },
  {
    name: 'adopted styles',
    events: (at, { url, bodyId }) => [
      incremental(at, 15, {
        id: 1,
        styleIds: [1],
        styles: [{ styleId: 1, rules: [{ rule: `p { background: url(${url}) }`, index: 0 }] }],
      }),
      incremental(at + 1, 15, {
        id: bodyId,
        styleIds: [2],
        styles: [{ styleId: 2, rules: [{ rule: `@import "${url}"` }] }],
      }),
    ],
  },
  {
    name: 'fonts',
    events: (at, { url }) => [
      incremental(at, 10, { family: 'f', fontSource: `url(${url})`, buffer: false, descriptors: { display: 'block' } }),
      incremental(at + 1, 10, { family: 'g', fontSource: '[1,2,3]', buffer: true }),
    ],
  },
  {
    name: 'commands of a canvas',
    events: (at, { b, url, bodyId }) => {
      const canvas = b.element('canvas', { rr_dataURL: url })
      return [
        add(at, bodyId, canvas),
        incremental(at + 1, 9, {
          id: canvas.id,
          type: 0,
          commands: [{ property: 'drawImage', args: [{ rr_type: 'HTMLImageElement', src: `${url}?2` }, 0, 0] }],
        }),
        incremental(at + 2, 9, { id: canvas.id, type: 0, property: 'constructor', args: ['fetch'], setter: true }),
      ]
    },
  },
  {
    name: 'media that plays',
    events: (at, { b, url, bodyId }) => {
      const video = b.element('video', { src: url })
      return [
        add(at, bodyId, video),
        incremental(at + 1, 7, { id: video.id, type: 0, currentTime: 1, muted: false, volume: 1 }),
      ]
    },
  },
  {
    name: 'clicks, focus and input that are played',
    events: (at, { b, url, script, bodyId }) => {
      const link = b.element('a', { href: url, target: '_top', onclick: script }, [b.text('x')])
      const form = b.element('form', { action: url })
      return [
        add(at, bodyId, link),
        add(at, bodyId, form),
        ...[1, 2, 0, 5, 6].map((type, i) => incremental(at + 1 + i, 2, { type, id: link.id, x: 1, y: 1 })),
        incremental(at + 9, 5, { id: form.id, text: script, isChecked: true }),
      ]
    },
  },
  {
    name: 'messages for the console',
    events: (at, { script }) => [
      {
        type: 6,
        timestamp: at,
        data: {
          plugin: 'rrweb/console@1',
          payload: { level: 'error', payload: [`<img src=x onerror="${script}">`, { toString: 1 }] },
        },
      },
      {
        type: 6,
        timestamp: at,
        data: {
          plugin: 'rrweb/network@1',
          payload: { requests: [{ name: `javascript:${script}`, status: 500 }, null, 3] },
        },
      },
      { type: 5, timestamp: at, data: { tag: 'x', payload: { kind: 'progress', reached: 1e300 } } },
    ],
  },
  {
    name: 'events that are none',
    events: at => [
      {},
      { timestamp: at },
      { type: 'text', timestamp: at, data: [] },
      { type: 2, timestamp: 'text', data: {} },
      { type: 3, timestamp: at },
      { type: 3, timestamp: at, data: null },
      { type: 3, timestamp: at, data: { source: 0 } },
      {
        type: 3,
        timestamp: at,
        data: { source: 0, adds: 'x', removes: { length: 9e9 }, texts: [null], attributes: [1, { id: 1 }] },
      },
      { type: 3, timestamp: at, data: { source: 1, positions: [null, { x: 'a' }, {}] } },
      { type: 3, timestamp: at, data: { source: 8, id: {}, adds: 4 } },
      { type: 99, timestamp: at, data: { __proto__: { polluted: true } } },
      {
        type: 3,
        timestamp: at,
        data: {
          source: 0,
          adds: [
            { parentId: 1, node: null },
            { node: { type: 2, tagName: '<img>', attributes: { constructor: { prototype: 1 } }, id: -1 } },
          ],
        },
      },
      { type: 4, timestamp: at, data: { width: -1, height: 'NaN' } },
      { type: 4, timestamp: at, data: { width: 1e9, height: 1e9 } },
      { type: 4, timestamp: at, data: { width: 1_024, height: 640 } },
    ],
  },
  {
    name: 'a snapshot that is none',
    events: at => [
      { type: 2, timestamp: at, data: { node: 'x' } },
      { type: 2, timestamp: at, data: {} },
    ],
  },
  {
    name: 'nodes within themselves',
    events: (at, { b, bodyId }) => {
      const [outer, inner] = [b.element('div'), b.element('div')]
      return [
        add(at, bodyId, outer),
        add(at, outer.id as number, inner),
        add(at, inner.id as number, outer),
        add(at, bodyId, { type: 2, tagName: 'html', attributes: {}, childNodes: [], id: bodyId }),
        mutation(at, {
          removes: [
            { parentId: inner.id, id: outer.id },
            { parentId: 1, id: 1 },
          ],
        }),
      ]
    },
  },
  {
    // Deeper ones are refused before they are stored.
    name: 'a tree of 4,900 levels',
    events: (at, { bodyId }) => [deepTree(at, bodyId, 4_900)],
  },
  {
    name: 'a tree that mutations make deep',
    events: (at, { b, bodyId }) => {
      let parentId = bodyId
      const adds = Array.from({ length: 20_000 }, () => {
        const node = b.element('div')
        const one = { parentId, nextId: null, node }
        parentId = node.id as number
        return one
      })
      return [mutation(at, { adds })]
    },
  },
  {
    name: 'a large table and large attributes',
    events: (at, { b, bodyId }) => [
      add(
        at,
        bodyId,
        b.element(
          'div',
          { style: 'height: 10px; overflow: hidden' },
          Array.from({ length: 20_000 }, () => b.element('i')),
        ),
      ),
      add(at, bodyId, b.element('div', { title: 'x'.repeat(4_000_000), class: 'y'.repeat(1_000_000) })),
    ],
  },
  {
    name: 'fifty thousand changes at one time',
    events: (at, { targetId }): readonly StagedEvent[] =>
      Array.from({ length: 50_000 }, (_, i) =>
        mutation(at, { attributes: [{ id: targetId, attributes: { title: String(i) } }] }),
      ),
  },
]
