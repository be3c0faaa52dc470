import { graphlib, layout } from '@dagrejs/dagre'
import type { ServiceEdge } from '../api/generated/client.ts'

/** A service, or what services call that has sent no spans. */
export interface MapNode {
  readonly id: string
  readonly name: string
  /** `service` has sent spans; `unknown` is the other side of a call that nothing names. */
  readonly kind: 'service' | 'database' | 'queue' | 'host' | 'unknown'
  /** The top left corner. */
  readonly x: number
  readonly y: number
}

interface Point {
  readonly x: number
  readonly y: number
}

/** Calls from one node to another, with the points of their line. */
export interface MapEdge {
  readonly from: string
  readonly to: string
  readonly points: readonly Point[]
  /** The middle of the text beside the line. */
  readonly label: Point
  readonly calls: number
  readonly errors: number
  /** The longest of the 95th percentiles of its parts, as the callee saw them if it has sent spans. */
  readonly p95Ms: number | undefined
}

/** Nodes and lines from callers on the left to callees on the right. */
interface MapLayout {
  readonly width: number
  readonly height: number
  readonly nodes: readonly MapNode[]
  readonly edges: readonly MapEdge[]
}

/** Size of a node. */
export const NODE = { width: 150, height: 58 } as const
/** Room for the text beside a line. */
const LABEL = { width: 92, height: 14, labelpos: 'c' } as const
/** Lines up to which each has its text beside it. Else that of the line which is pointed at is shown. */
export const LABELLED_EDGES = 16
const MARGIN = 16

type Node = Pick<MapNode, 'id' | 'name' | 'kind'>

/** Returns what called. */
function callerOf({ caller, callee }: ServiceEdge): Node {
  if (caller !== null) return { id: `service ${caller}`, name: caller, kind: 'service' }
  return { id: `caller of ${callee}`, name: 'unknown caller', kind: 'unknown' }
}

/** Returns what was called. */
function calleeOf({ caller, callee, kind, peer }: ServiceEdge): Node {
  if (callee !== null) return { id: `service ${callee}`, name: callee, kind: 'service' }
  if (peer === null) return { id: `callee of ${caller}`, name: 'unknown', kind: 'unknown' }
  const name = peer.name || peer.system
  return { id: `${kind} ${peer.system} ${name}`, name, kind: kind === 'database' || kind === 'queue' ? kind : 'host' }
}

/** Lays out what calls and is called, in layers. Calls between the same two nodes are one line. */
export function layoutMap(edges: readonly ServiceEdge[]): MapLayout {
  const nodes = new Map<string, Node>()
  const lines = new Map<string, Omit<MapEdge, 'points' | 'label'>>()
  for (const edge of edges) {
    const [from, to] = [callerOf(edge), calleeOf(edge)]
    nodes.set(from.id, from)
    nodes.set(to.id, to)
    const key = JSON.stringify([from.id, to.id])
    const { calls = 0, errors = 0, p95Ms } = lines.get(key) ?? {}
    const p95 = (edge.durationMs ?? edge.callerDurationMs)?.p95
    const slower = p95Ms === undefined || (p95 !== undefined && p95 > p95Ms) ? p95 : p95Ms
    lines.set(key, {
      ...{ from: from.id, to: to.id, p95Ms: slower },
      ...{ calls: calls + edge.calls, errors: errors + edge.errors },
    })
  }
  const isLabelled = lines.size <= LABELLED_EDGES
  const graph = new graphlib.Graph()
  graph.setGraph({ rankdir: 'LR', nodesep: 14, ranksep: isLabelled ? 28 : 80, marginx: MARGIN, marginy: MARGIN })
  for (const { id } of nodes.values()) graph.setNode(id, { ...NODE })
  for (const { from, to } of lines.values()) graph.setEdge(from, to, isLabelled ? { ...LABEL } : {})
  layout(graph)
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number }
  return {
    ...{ width, height },
    nodes: [...nodes.values()].map(node => {
      const { x, y } = graph.node(node.id) as { x: number; y: number }
      return { ...node, x: x - NODE.width / 2, y: y - NODE.height / 2 }
    }),
    edges: [...lines.values()].map(line => {
      const { points, x, y } = graph.edge(line.from, line.to) as { points: MapEdge['points'] } & Partial<Point>
      const { x: middleX = 0, y: middleY = 0 } = points[Math.floor(points.length / 2)] ?? {}
      return { ...line, points, label: { x: x ?? middleX, y: y ?? middleY } }
    }),
  }
}
