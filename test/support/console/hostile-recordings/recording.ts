import {
  mutation,
  PageBuilder,
  type StagedChunk,
  type StagedEvent,
  type StagedNode,
  snapshotEvents,
} from '../staged-recording.ts'
import { HOSTILE_EVENTS } from './events.ts'
import { HOSTILE_PAGES, type Means } from './pages.ts'
import { HOSTILE_TIMES } from './times.ts'
import type { Trap } from './trap.ts'

/** Time between the parts of an attack: one step of the arrow keys of the player. */
const STEP_MS = 5_000
const PARTS = 3

/** A text that the picture has when everything before it was played. */
export interface Mark {
  readonly attack: string
  readonly text: string
}

/** Returns a recording of all attacks, one after the other, and the marks that it shows, one in each step. */
export function hostileRecording(startMs: number, trap: Trap): { chunks: StagedChunk[]; marks: Mark[] } {
  const attacks = [
    ...HOSTILE_PAGES.map(({ name, nodes, isHead = false }) => ({
      name,
      eventsOf: (at: number, means: Means, text: (state: string) => string) =>
        pageEvents(at, { nodes, isHead }, means, text),
    })),
    ...[...HOSTILE_EVENTS, HOSTILE_TIMES].map(({ name, events }) => ({
      name,
      eventsOf: (at: number, means: Means, text: (state: string) => string) => {
        const page = innocentPage(means.b, text('recorded'))
        const { bodyId, targetId, styleId, markId } = page
        return [
          ...snapshotEvents(at, page.node),
          ...(events(at + STEP_MS - 1_000, { ...means, bodyId, targetId, styleId }) as StagedEvent[]),
          mutation(at + STEP_MS, { texts: [{ id: markId, value: text('changed') }] }),
        ]
      },
    })),
  ]
  const chunks: StagedChunk[] = []
  const marks: Mark[] = []
  for (const [i, { name, eventsOf }] of attacks.entries()) {
    const at = startMs + i * STEP_MS * PARTS
    const url = trap.urlOf(`v${i}`)
    const script = `console.log('RAN ${i}');try{alert('RAN ${i}')}catch(e){};fetch('${url}-ran');top.postMessage('RAN ${i}','*')`
    const means = { b: new PageBuilder(), url, socketUrl: trap.urlOf(`v${i}`, 'ws'), script }
    const text = (state: string) => `attack ${i} ${state}`
    const last = innocentPage(new PageBuilder(), text('survived'))
    const events = [...eventsOf(at, means, text), ...snapshotEvents(at + 2 * STEP_MS, last.node)]
    chunks.push({ windowId: 'hostile', segmentId: i, events })
    marks.push(...['recorded', 'changed', 'survived'].map(state => ({ attack: name, text: text(state) })))
  }
  return { chunks, marks }
}

function pageEvents(
  at: number,
  { nodes, isHead }: { readonly nodes: (means: Means) => readonly StagedNode[]; readonly isHead: boolean },
  means: Means,
  text: (state: string) => string,
): StagedEvent[] {
  const { b } = means
  const hostile = nodes(means)
  const mark = b.element('p', {}, [b.text(text('recorded'))])
  const page = isHead ? b.page(hostile, [mark]) : b.page([], [mark, ...hostile])
  const innocent = innocentPage(b, text('innocent'))
  return [
    ...snapshotEvents(at, page),
    ...snapshotEvents(at + STEP_MS - 100, innocent.node),
    mutation(at + STEP_MS - 50, {
      adds: nodes(means).flatMap(node => addsOf(isHead ? innocent.headId : innocent.bodyId, node)),
    }),
    mutation(at + STEP_MS, { texts: [{ id: innocent.markId, value: text('changed') }] }),
  ]
}

/** A mutation adds nodes one by one, parents first. */
function addsOf(parentId: number, node: StagedNode): object[] {
  const children = (node.childNodes ?? []) as readonly StagedNode[]
  const own = node.isShadow ? node : { ...node, childNodes: [] }
  return [{ parentId, nextId: null, node: own }, ...children.flatMap(child => addsOf(node.id as number, child))]
}

function innocentPage(b: PageBuilder, text: string) {
  const style = b.element('style', {}, [b.text('p { color: #123 }', { isStyle: true })])
  const markText = b.text(text)
  const target = b.element('div', { class: 'target' }, [b.text('target')])
  const node = b.page([style], [b.element('p', {}, [markText]), target])
  const html = (node.childNodes as StagedNode[])[1] as StagedNode
  const [head, body] = html.childNodes as [StagedNode, StagedNode]
  return {
    node,
    markId: markText.id as number,
    headId: head.id as number,
    bodyId: body.id as number,
    targetId: target.id as number,
    styleId: style.id as number,
  }
}
