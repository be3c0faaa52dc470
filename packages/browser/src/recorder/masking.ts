/** Selectors of what is masked and left out. */
interface MaskRules {
  readonly mask: string
  readonly block: string
}

/** Editable elements are inputs in all but name. */
const ALWAYS_MASKED = '[data-penstock-mask], [contenteditable]:not([contenteditable="false"])'
const ALWAYS_BLOCKED = '[data-penstock-block]'

/** Attributes with text that people read or that names what they do. */
const TEXT_ATTRIBUTES = new Set([
  ...['alt', 'title', 'placeholder', 'value', 'label', 'content', 'summary', 'srcdoc', 'href', 'src', 'srcset'],
  ...['aria-label', 'aria-description', 'aria-placeholder', 'aria-roledescription', 'aria-valuetext', 'data-value'],
])

/** Returns the rules with those that always hold. An invalid selector is refused, because it would mask nothing. */
export function maskRules({
  mask,
  block,
  maskAllText,
}: {
  mask?: string | undefined
  block?: string | undefined
  maskAllText?: boolean | undefined
}): MaskRules {
  const rules = {
    mask: maskAllText ? '*' : [ALWAYS_MASKED, mask].filter(Boolean).join(', '),
    block: [ALWAYS_BLOCKED, block].filter(Boolean).join(', '),
  }
  for (const selector of Object.values(rules)) document.createDocumentFragment().querySelector(selector)
  return rules
}

/** Returns a text of the same length without its characters. Blanks and line ends stay, so that the page keeps its form. */
export function maskText(text: string): string {
  return text.replace(/\S/g, '*')
}

/** Returns what a person has typed without its characters. Blanks would show the form of a number. */
export function maskInput(text: string): string {
  return text.replace(/[^\n]/g, '*')
}

/** A node of a snapshot of rrweb. */
interface SnapshotNode {
  readonly id: number
  readonly type: number
  readonly tagName?: string
  readonly attributes?: Record<string, unknown>
  readonly childNodes?: readonly SnapshotNode[]
  textContent?: string
}

/** Parts of the events of rrweb that contain texts of the page. */
interface EventData {
  readonly source?: number
  readonly node?: SnapshotNode
  readonly adds?: readonly { readonly node: SnapshotNode }[]
  readonly texts?: { readonly id: number; value: string | null }[]
  readonly attributes?: readonly { readonly id: number; readonly attributes: Record<string, unknown> }[]
  text?: string
}

const FULL_SNAPSHOT = 2
const INCREMENTAL = 3
const MUTATION = 0
const INPUT = 5
/** Kinds of nodes of rrweb. */
const ELEMENT = 2
const TEXT = 3
const INPUT_TAGS = new Set(['input', 'textarea', 'select', 'option'])

/**
 * Masks the events of a recording. rrweb masks inputs of the types that it knows, and texts. This masks the rest: values of
 * all inputs, hidden ones too, and the attributes of masked elements and of what is within them.
 */
export class EventMasker {
  readonly #rules: MaskRules
  readonly #nodeOf: (id: number) => Node | null

  constructor(rules: MaskRules, nodeOf: (id: number) => Node | null) {
    this.#rules = rules
    this.#nodeOf = nodeOf
  }

  /** Masks an event in place. */
  mask({ type, data }: { readonly type: number; readonly data: unknown }): void {
    const event = data as EventData
    if (type === FULL_SNAPSHOT && event.node) this.#maskNode(event.node, false)
    if (type !== INCREMENTAL) return
    if (event.source === INPUT && typeof event.text === 'string') event.text = maskInput(event.text)
    if (event.source === MUTATION) this.#maskMutation(event)
  }

  #maskMutation({ adds = [], texts = [], attributes = [] }: EventData): void {
    for (const { node } of adds) this.#maskNode(node, this.#isWithinMasked(node.id))
    for (const text of texts) {
      if (text.value !== null && this.#isWithinMasked(text.id)) text.value = maskText(text.value)
    }
    for (const { id, attributes: changed } of attributes) {
      const tagName = elementOf(this.#nodeOf(id))?.localName ?? ''
      maskAttributes(changed, tagName, this.#isWithinMasked(id))
    }
  }

  #maskNode(node: SnapshotNode, isWithinMasked: boolean): void {
    const isMasked = isWithinMasked || (node.type === ELEMENT && this.#matches(node.id))
    if (node.attributes) maskAttributes(node.attributes, node.tagName ?? '', isMasked)
    if (isMasked && node.type === TEXT && node.textContent) node.textContent = maskText(node.textContent)
    for (const child of node.childNodes ?? []) this.#maskNode(child, isMasked)
  }

  #matches(id: number): boolean {
    return elementOf(this.#nodeOf(id))?.matches(this.#rules.mask) ?? false
  }

  #isWithinMasked(id: number): boolean {
    for (let node = this.#nodeOf(id); node !== null; node = hostOf(node)) {
      const element = elementOf(node) ?? node.parentElement
      if (element?.closest(this.#rules.mask)) return true
    }
    return false
  }
}

/** Returns a node that is an element. Those of a frame are no instances of this page's `Element`. */
function elementOf(node: Node | null): Element | null {
  return node?.nodeType === Node.ELEMENT_NODE ? (node as Element) : null
}

/** Returns the element that the shadow tree or the frame of a node belongs to. */
function hostOf(node: Node): Element | null {
  const root = node.getRootNode()
  return (root as Partial<ShadowRoot>).host ?? (root as Partial<Document>).defaultView?.frameElement ?? null
}

/** Masks attributes in place: the value of an input in any case, others within a masked element. Those that only style it stay. */
function maskAttributes(attributes: Record<string, unknown>, tagName: string, isMasked: boolean): void {
  const isInput = INPUT_TAGS.has(tagName)
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value !== 'string') continue
    if (isInput && name === 'value') attributes[name] = maskInput(value)
    else if (isMasked && (TEXT_ATTRIBUTES.has(name) || name.startsWith('data-'))) attributes[name] = maskText(value)
  }
}
