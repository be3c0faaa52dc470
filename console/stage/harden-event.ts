import { EVENT, isRecord, type RecordedEvent, SOURCE } from './recorded-event.ts'

/** Levels of elements that a parser of HTML creates at most. Deeper trees exhaust the stack of the browser. */
export const DEPTH_MAX = 512
/** Nodes of a snapshot, or of a mutation, that are built. */
const NODES_MAX = 300_000

/**
 * Attributes that make the browser do something besides drawing, which the policy of the stage does not forbid in every case:
 * connections to other hosts (`rel`, also of anchors), instructions of a document (`http-equiv`), documents within documents.
 */
const ACTING: ReadonlySet<string> = new Set([
  'action',
  'attributionsrc',
  'autofocus',
  'autoplay',
  'formaction',
  'http-equiv',
  'is',
  'nonce',
  'ping',
  'rel',
  'srcdoc',
])
/** Elements whose addresses are documents. The recorder writes the documents themselves. */
const FRAMES: ReadonlySet<string> = new Set(['iframe', 'frame', 'embed', 'object', 'portal', 'fencedframe'])
/**
 * Addresses that are loaded. Those of other hosts are left out, although the policy forbids to load them: Chromium connects to the
 * host of a frame before it asks the policy, and a change of an attribute does not state whether its element is a frame.
 */
const LOADED: ReadonlySet<string> = new Set(['src', 'data', 'poster', 'background', 'srcset', 'imagesrcset'])
const EMBEDDED = /^(?:data|blob):/i
const ADDRESSES: ReadonlySet<string> = new Set(['href', 'xlink:href', 'to', 'from', 'by', 'values'])
const TAG_NAME = /^[a-z][a-z0-9._-]*$/i
// Browsers ignore white space and control characters in the scheme of an address.
const SCRIPT_ADDRESS = /^[\s\p{Cc}]*(?:j[\s\p{Cc}]*a[\s\p{Cc}]*v[\s\p{Cc}]*a|v[\s\p{Cc}]*b)[\s\p{Cc}]*s[\s\p{Cc}]*c/iu

/**
 * Takes from an event what would make its picture act, in place. The policy of the stage and the sandbox of the recorded document
 * forbid scripts and requests; this covers what they do not: connections without requests, look-ups of names, trees that exhaust
 * the browser. Returns whether the event can be played.
 */
export function hardenEvent({ type, data }: RecordedEvent): boolean {
  if (type === EVENT.fullSnapshot) return hardenTree(data.node)
  if (type !== EVENT.incremental || data.source !== SOURCE.mutation) return true
  for (const list of ['adds', 'removes', 'texts', 'attributes']) {
    data[list] = Array.isArray(data[list]) ? data[list].filter(isRecord) : []
  }
  data.adds = (data.adds as Record<string, unknown>[]).filter(add => hardenTree(add.node))
  for (const mutation of data.attributes as Record<string, unknown>[]) {
    mutation.attributes = isRecord(mutation.attributes) ? mutation.attributes : {}
    hardenAttributes(mutation.attributes as Record<string, unknown>, undefined)
  }
  return true
}

/** Hardens a tree level by level, because a recursion would be as deep as the tree. */
function hardenTree(root: unknown): boolean {
  if (!isRecord(root)) return false
  let level = [root]
  let left = NODES_MAX
  for (let depth = 1; level.length > 0; depth++) {
    const next: Record<string, unknown>[] = []
    for (const node of level) {
      hardenNode(node)
      const children = Array.isArray(node.childNodes) && depth < DEPTH_MAX ? node.childNodes.filter(isRecord) : []
      node.childNodes = children.slice(0, left)
      left -= (node.childNodes as unknown[]).length
      for (const child of node.childNodes as Record<string, unknown>[]) next.push(child)
    }
    level = next
  }
  return true
}

function hardenNode(node: Record<string, unknown>): void {
  if ('textContent' in node && typeof node.textContent !== 'string') node.textContent = ''
  if (!('tagName' in node) && !('attributes' in node)) return
  const tag = typeof node.tagName === 'string' && TAG_NAME.test(node.tagName) ? node.tagName : 'div'
  node.tagName = tag
  node.attributes = isRecord(node.attributes) ? node.attributes : {}
  hardenAttributes(node.attributes as Record<string, unknown>, tag.toLowerCase())
}

function hardenAttributes(attributes: Record<string, unknown>, tag: string | undefined): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (acts(name.toLowerCase(), value, tag)) delete attributes[name]
  }
}

function acts(name: string, value: unknown, tag: string | undefined): boolean {
  if (name.startsWith('on') || ACTING.has(name)) return true
  if (value === null) return false
  if (typeof value === 'object') return name !== 'style'
  if (LOADED.has(name))
    return typeof value !== 'string' || !EMBEDDED.test(value) || (tag !== undefined && FRAMES.has(tag))
  return ADDRESSES.has(name) && typeof value === 'string' && SCRIPT_ADDRESS.test(value)
}
