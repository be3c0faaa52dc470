import type { SourceMapRow } from '../../clickhouse/queries/releases/select-source-maps.ts'
import type { FindingFramesRow } from '../../clickhouse/tables/finding-frames-table.ts'
import { type FindingMove, rankOf } from '../../clickhouse/tables/finding-moves-table.ts'
import type { StoredFrame, UnresolvedReason } from '../../schemas/http/findings/schemas.ts'
import type { StackRequest } from '../../schemas/queues/symbolication.ts'
import { groupException } from '../../shared/grouping/group-exception.ts'
import { MAPPED_FRAMES_MAX, mapStack } from '../../shared/grouping/map-stack.ts'
import { stackToRead } from '../../shared/grouping/stack-to-read.ts'
import { releaseSlugOf } from '../../shared/ids/release-slug.ts'
import { sourceMapKey } from '../../shared/object-store/object-keys.ts'
import { isInApp } from '../../shared/stacks/in-app.ts'
import { readStack } from '../../shared/stacks/read-stack.ts'
import type { ReadStack, StackFrame } from '../../shared/stacks/stack.ts'
import { topFrameOf } from '../../shared/stacks/top-frame.ts'
import type { KnownRules } from '../exceptions/known-rules.ts'
import type { LoadedManifest, ManifestReader } from './manifest-reader.ts'
import { normalizeAddress } from './match-chunk.ts'
import type { MapReference, MapTracer } from './tracing/map-tracer.ts'
import type { OriginalPosition, Position } from './tracing/parsed-map.ts'

/** Characters of source lines in the frames of a stack. */
const SOURCE_CHARACTERS = 32_768

/** The workspace and surface of stacks. Only maps of this owner are used. */
export interface StackOwner {
  readonly workspaceId: string
  readonly surfaceId: string
}

/** A stack to symbolicate, and the arrival of its exception. */
export interface ReceivedStack extends Omit<StackRequest, 'kind'> {
  readonly receivedAtMs: number
}

/** Dependencies of `symbolicateStacks`. */
export interface SymbolicateStacksDeps {
  readonly manifests: ManifestReader
  readonly selectSourceMaps: (owner: StackOwner, debugIds: readonly string[]) => Promise<readonly SourceMapRow[]>
  readonly tracer: Pick<MapTracer, 'trace' | 'hasTime'>
  /** Repeats work that fails with a TransientError until it succeeds or the worker stops. */
  readonly retryUntilStopped: <T>(what: string, work: () => Promise<T>) => Promise<T>
  /** The rules by which resolved frames are grouped. */
  readonly rules: KnownRules
  readonly now: () => number
}

/** A stack with its parsed frames and the manifest of its release. */
interface ParsedStack {
  readonly stack: ReceivedStack
  readonly read: ReadStack
  readonly frames: readonly StackFrame[]
  /** The debug id of each frame. */
  readonly debugIds: readonly (string | undefined)[]
  readonly manifest: LoadedManifest | undefined
}

/** The map of a script, and the release in which it was found. */
interface FoundMap extends MapReference {
  readonly sequence: number
  readonly releaseSlug: string
}

/** The rows of stacks that were symbolicated. */
export interface SymbolicatedStacks {
  readonly rows: FindingFramesRow[]
  /** The findings that resolved frames decide on. */
  readonly moves: FindingMove[]
  /** Number of stacks, counted from the first, that were symbolicated. The workspace had no time left for the others. */
  readonly done: number
}

/** A stack that was symbolicated. Stacks of other languages have neither row nor move. */
interface SymbolicatedStack {
  readonly row?: FindingFramesRow
  readonly move?: FindingMove | undefined
}

/**
 * Resolves the frames of these stacks through the source maps of their owner. A map is found by the debug id of the
 * script, else by the address of the script in the release that the version of the service names. A stack without a map
 * becomes a row too; a stack of another language does not. Ends before the first stack for which the workspace has no time
 * left. At least one stack is done if it has time at first.
 */
export async function symbolicateStacks(
  deps: SymbolicateStacksDeps,
  owner: StackOwner,
  stacks: readonly ReceivedStack[],
): Promise<SymbolicatedStacks> {
  const rows: FindingFramesRow[] = []
  const moves: FindingMove[] = []
  let done = 0
  for await (const { row, move } of symbolicateEach(deps, owner, stacks)) {
    done++
    if (row !== undefined) rows.push(row)
    if (move !== undefined) moves.push(move)
  }
  return { rows, moves, done }
}

/** Does the same stack by stack, each when the one before was taken. */
export async function* symbolicateEach(
  deps: SymbolicateStacksDeps,
  owner: StackOwner,
  stacks: readonly ReceivedStack[],
): AsyncGenerator<SymbolicatedStack> {
  const parsed = await readManifests(deps, owner, stacks)
  const maps = await readDebugIds(deps, owner, parsed)
  for (const one of parsed) {
    if (!deps.tracer.hasTime(owner.workspaceId)) return
    yield one.frames.length === 0 ? {} : await symbolicate(deps, owner, one, maps)
  }
}

async function readManifests(
  deps: SymbolicateStacksDeps,
  owner: StackOwner,
  stacks: readonly ReceivedStack[],
): Promise<ParsedStack[]> {
  const manifests = new Map<string, LoadedManifest | undefined>()
  for (const { serviceVersion } of stacks) {
    if (serviceVersion === '' || manifests.has(serviceVersion)) continue
    const slug = releaseSlugOf({ ...owner, name: serviceVersion })
    const manifest = await deps.retryUntilStopped('read a manifest', () => deps.manifests.read(owner.workspaceId, slug))
    manifests.set(serviceVersion, manifest)
  }
  return stacks.map(stack => {
    const read = readStack(stackToRead(stack))
    const frames = javascriptFrames(read)
    const debugIds = debugIdsOf(stack, frames)
    return { stack, read, frames, debugIds, manifest: manifests.get(stack.serviceVersion) }
  })
}

/** Returns the frames of a JavaScript stack, those of the exception that was reported first. Other languages have no maps. */
function javascriptFrames({ language, links }: ReadStack): StackFrame[] {
  return language === 'javascript' ? links.flatMap(({ frames }) => frames).slice(0, MAPPED_FRAMES_MAX) : []
}

/** Reads maps of other releases by debug id. Each job reads again, because missing maps may arrive at any time. */
async function readDebugIds(
  deps: SymbolicateStacksDeps,
  owner: StackOwner,
  parsed: readonly ParsedStack[],
): Promise<ReadonlyMap<string, FoundMap>> {
  const wanted = new Set<string>()
  for (const { debugIds, manifest } of parsed) {
    for (const debugId of debugIds) {
      if (debugId !== undefined && !manifest?.byDebugId.has(debugId)) wanted.add(debugId)
    }
  }
  const found = new Map<string, FoundMap>()
  const PAGE = 1_000
  const ids = [...wanted]
  for (let i = 0; i < ids.length; i += PAGE) {
    const page = ids.slice(i, i + PAGE)
    const rows = await deps.retryUntilStopped('look up debug ids', () => deps.selectSourceMaps(owner, page))
    for (const { debugId, sha256, sequence, releaseSlug } of rows) {
      const map = { workspaceId: owner.workspaceId, mapKey: sourceMapKey(owner.workspaceId, sha256) }
      found.set(debugId, { ...map, sequence: Number(sequence), releaseSlug })
    }
  }
  return found
}

/** Finds the debug ids of frames by their addresses as sent, else without query. An id for one query is not that of another. */
function debugIdsOf({ debugIds }: ReceivedStack, frames: readonly StackFrame[]): (string | undefined)[] {
  const asSent = new Map(Object.entries(debugIds))
  if (asSent.size === 0) return frames.map(() => undefined)
  const withoutQuery = new Map(
    [...asSent].filter(([url]) => !/[?#]/.test(url)).map(([url, id]) => [normalizeAddress(url), id]),
  )
  return frames.map(({ file }) => asSent.get(file) ?? withoutQuery.get(normalizeAddress(file)))
}

async function symbolicate(
  deps: SymbolicateStacksDeps,
  owner: StackOwner,
  { stack, read, frames, debugIds, manifest }: ParsedStack,
  maps: ReadonlyMap<string, FoundMap>,
): Promise<{ row: FindingFramesRow; move: FindingMove | undefined }> {
  const found = frames.map((frame, i) =>
    isMappable(frame) ? findMap(owner, debugIds[i], frame, manifest, maps) : undefined,
  )
  const { originals, unusable } = await trace(deps, frames, found)
  const reasonOf = (frame: StackFrame, map: FoundMap | undefined): UnresolvedReason | undefined => {
    if (map !== undefined) return unusable.has(map.mapKey) ? 'unusable_map' : 'no_position'
    if (!isMappable(frame)) return undefined
    if (manifest !== undefined) return 'no_map'
    return stack.serviceVersion === '' ? 'no_version' : 'no_release'
  }
  let charactersLeft = SOURCE_CHARACTERS
  const presented = frames.map((frame, i) => {
    const original = originals[i]
    return original === undefined
      ? presentAsSent(frame, reasonOf(frame, found[i]))
      : { ...presentResolved(frame, original, originals[i + 1]), ...sourceOf(original) }
  })
  function sourceOf({ function: name = '', file, sourceLines }: OriginalPosition): Pick<StoredFrame, 'sourceLines'> {
    if (sourceLines === undefined || !isInApp('javascript', { function: name, module: '', file })) return {}
    const characters = sourceLines.lines.reduce((sum, line) => sum + line.length, 0)
    if (characters > charactersLeft) return {}
    charactersLeft -= characters
    return { sourceLines: { from: sourceLines.from, lines: [...sourceLines.lines] } }
  }
  const used = found.find((_, i) => originals[i] !== undefined)
  const row = {
    workspaceId: owner.workspaceId,
    surfaceId: owner.surfaceId,
    variantId: stack.variantId,
    serviceVersion: stack.serviceVersion,
    releaseSlug:
      stack.serviceVersion === '' ? (used?.releaseSlug ?? '') : releaseSlugOf({ ...owner, name: stack.serviceVersion }),
    receivedAtMs: stack.receivedAtMs,
    occurredAtUnixNano: stack.occurredAtUnixNano,
    symbolicatedAtMs: deps.now(),
    sequence: Math.max(manifest?.manifest.sequence ?? 0, ...found.map(map => map?.sequence ?? 0)),
    frameCount: frames.filter(isMappable).length,
    resolvedFrameCount: originals.filter(original => original !== undefined).length,
    frames: JSON.stringify(presented),
  }
  const { resolvedFrameCount, sequence } = row
  if (resolvedFrameCount === 0) return { row, move: undefined }
  const rules = await deps.retryUntilStopped('read rules', () => deps.rules.of(owner.workspaceId))
  const { variantId } = stack
  const mapped = mapStack(read, presented)
  const { findingId } = groupException({ ...owner, ...stack }, rules, stackToRead(stack), mapped)
  const rank = rankOf(resolvedFrameCount, sequence, rules.revision)
  return { row, move: { workspaceId: owner.workspaceId, variantId, findingId, rank, topFrame: topFrameOf(mapped) } }
}

const RUNTIME_FILE = /^(?:node:|wasm:|native$|<|\[native|InternalBytecode\.js$|[a-z-]{1,20}-extension:)/

/** Returns false for frames without a source map: code of the runtime, and frames without line or column. */
function isMappable(frame: StackFrame): boolean {
  return frame.line > 0 && positionOf(frame).column > 0 && !RUNTIME_FILE.test(frame.file)
}

/** Returns where to look up a frame. Hermes writes an offset from 0 for the column of its bytecode. */
function positionOf({ line, column, text }: StackFrame): Position {
  return { line, column: text.includes('(address at ') ? column + 1 : column }
}

function findMap(
  { workspaceId }: StackOwner,
  debugId: string | undefined,
  { file }: StackFrame,
  loaded: LoadedManifest | undefined,
  maps: ReadonlyMap<string, FoundMap>,
): FoundMap | undefined {
  const inOtherRelease = debugId === undefined ? undefined : maps.get(debugId)
  if (inOtherRelease !== undefined) return inOtherRelease
  const entry = (debugId === undefined ? undefined : loaded?.byDebugId.get(debugId)) ?? loaded?.chunks.match(file)
  if (loaded === undefined || entry === undefined) return undefined
  const { sequence, releaseSlug } = loaded.manifest
  return { workspaceId, mapKey: sourceMapKey(workspaceId, entry.sha256), sequence, releaseSlug }
}

/** Traces the frames to their original positions, map by map. Returns the keys of maps that are missing or unusable too. */
async function trace(
  deps: SymbolicateStacksDeps,
  frames: readonly StackFrame[],
  found: readonly (FoundMap | undefined)[],
): Promise<{ originals: (OriginalPosition | undefined)[]; unusable: ReadonlySet<string> }> {
  const originals: (OriginalPosition | undefined)[] = frames.map(() => undefined)
  const unusable = new Set<string>()
  for (const mapKey of new Set(found.map(map => map?.mapKey))) {
    const map = found.find(one => one?.mapKey === mapKey)
    if (map === undefined) continue
    const indexes = [...frames.keys()].filter(i => found[i]?.mapKey === mapKey)
    const positions = indexes.map(i => positionOf(frames[i] as StackFrame))
    const traced = await deps.retryUntilStopped('trace frames', () => deps.tracer.trace(map, positions))
    if (traced === undefined) unusable.add(map.mapKey)
    else for (const [k, i] of indexes.entries()) originals[i] = traced[k]
  }
  return { originals, unusable }
}

function presentAsSent(frame: StackFrame, reason: UnresolvedReason | undefined): StoredFrame {
  const sent = sentPosition(frame)
  return { ...sent, resolved: false, ...(reason && { unresolvedReason: reason }), generated: sent }
}

/** Describes a frame. If the source is missing, the function gets the name that its caller uses. */
function presentResolved(
  generated: StackFrame,
  original: OriginalPosition,
  caller: OriginalPosition | undefined,
): StoredFrame {
  return {
    function: original.function ?? caller?.name ?? generated.function,
    file: original.file,
    line: original.line,
    column: original.column,
    ...(original.sourceLine === undefined ? {} : { sourceLine: original.sourceLine }),
    resolved: true,
    generated: sentPosition(generated),
  }
}

function sentPosition({ function: name, file, line, column }: StackFrame): StoredFrame['generated'] {
  return { function: name, file, line, column }
}
