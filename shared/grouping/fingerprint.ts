import { hash } from 'node:crypto'
import { base32 } from '../ids/base32.ts'
import { isRuntime } from '../stacks/in-app.ts'
import { hasHash, normalizeFile } from '../stacks/normalize-file.ts'
import { normalizeFunction } from '../stacks/normalize-function.ts'
import { normalizeMessage, normalizeName } from '../stacks/normalize-message.ts'
import { readStack } from '../stacks/read-stack.ts'
import type { ReadStack, StackFrame, StackLanguage, StackLink } from '../stacks/stack.ts'
import { topFrameOf } from '../stacks/top-frame.ts'
import { stackToRead } from './stack-to-read.ts'

/** Frames of an exception that count. */
const FRAME_COUNT = 3
/** Lines of a stack in an unknown format that count. */
const LINE_COUNT = 5
/** Exceptions of a chain that count. */
const LINK_COUNT = 8
/** Columns further right are of a minified file. */
const MINIFIED_COLUMN = 500
const ID_LENGTH = 26

/** The values that identify a finding. The caller limits the length of `stacktrace`. */
export interface ExceptionIdentity {
  readonly workspaceId: string
  readonly surfaceId: string
  readonly serviceName: string
  readonly serviceVersion?: string
  readonly type: string
  readonly message: string
  readonly stacktrace: string
  /** The value of `exception.fingerprint`, or empty. */
  readonly fingerprint?: string
}

/** What an exception belongs to before source maps and rules are known. */
interface Identity {
  /** The id of a finding. */
  readonly id: string
  /** What is sent alike (`exceptions.variant_id`): 16 bytes. */
  readonly variantId: Buffer
  /** Whether the message counted. */
  readonly usesMessage: boolean
  /** The frame that lists show, as it is stored (`topFrameOf`). */
  readonly topFrame: string
}

/** The texts that a fingerprint derives from. All texts are as they count: what varies is replaced. */
interface Basis {
  readonly by: 'client' | 'frames' | 'message' | 'title' | 'lines'
  /** The value of `exception.fingerprint`. */
  readonly fingerprint?: string
  /** The type of an exception without frames. */
  readonly type?: string
  /** The exceptions of the chain, with the frames that count. */
  readonly chain?: readonly { readonly type: string; readonly frames: readonly string[] }[]
  /** The lines of a stack in an unknown format. */
  readonly lines?: readonly string[]
  readonly message?: string
}

/**
 * Returns the finding of an exception (docs/api/findings.md#fingerprint). Its id is `fnd_` and 26 base32 characters of SHA-256
 * over workspace, surface, service and fingerprint. The id of its variant is 8 bytes of the same hash, so that the variants of one
 * finding are stored side by side, then 8 of a hash of the places in its stack, which another finding may follow from.
 * `stacktrace` is the part of the stack that is read (`stackToRead`), and `read` may have frames that source maps resolved.
 */
export function identify(
  exception: ExceptionIdentity,
  stacktrace = stackToRead(exception),
  read = readUnless(exception, stacktrace),
): Identity {
  const { workspaceId, surfaceId, serviceName, serviceVersion = '', type } = exception
  const basis = basisOf(exception, stacktrace, read)
  const { id, digest } = findingIdOf([workspaceId, surfaceId, serviceName, ...partsOf(basis)])
  const sent = hash('sha256', JSON.stringify([serviceVersion, type, read.links.map(placesOf)]), 'buffer')
  const variantId = Buffer.concat([digest.subarray(0, 8), sent.subarray(0, 8)])
  const shown = basis.by === 'client' ? readStack(stackToRead(exception)) : read
  return { id, variantId, usesMessage: basis.message !== undefined, topFrame: topFrameOf(shown) }
}

/** Returns the id of the finding that has these parts, and their hash. */
export function findingIdOf(parts: readonly string[]): { readonly id: string; readonly digest: Buffer } {
  const digest = hash('sha256', JSON.stringify(parts), 'buffer')
  return { id: `fnd_${base32(digest, ID_LENGTH)}`, digest }
}

/** Returns what tells an exception from others. Frames may be mapped to their sources or not. */
export function basisOf(
  {
    type,
    message,
    fingerprint = '',
    ...exception
  }: Omit<ExceptionIdentity, 'workspaceId' | 'surfaceId' | 'serviceName'>,
  stacktrace = stackToRead({ type, message, ...exception }),
  { language, links }: ReadStack = readUnless({ fingerprint }, stacktrace),
): Basis {
  if (fingerprint !== '') return { by: 'client', fingerprint }
  if (language === undefined) return withoutReader(type, message, stacktrace)
  const all = links.filter(link => link.relation !== 'suppressed')
  const isOfLanguage = (frame: StackFrame) => isRuntime(language, frame)
  const known = [isOfApplication, (frame: StackFrame) => !isOfLanguage(frame)].find(isKnown =>
    all.some(({ frames }) => frames.some(isKnown)),
  )
  const described = all.map((link, i) => describeLink(language, link, (i === 0 && type) || link.type, known))
  // The members of a group repeat.
  const distinct = new Map(described.map(link => [textOfLink(link), link]))
  const chain = [...distinct.values()].slice(0, LINK_COUNT)
  // Frames of the runtime alone do not tell one failure from another.
  return { by: 'frames', chain, ...(known === undefined && { message: normalizeMessage(message) }) }
}

const NOTHING_READ: ReadStack = { language: undefined, links: [] }

/** Reads a stack unless the client has sent what identifies its exception. */
function readUnless({ fingerprint = '' }: Pick<ExceptionIdentity, 'fingerprint'>, stacktrace: string): ReadStack {
  return fingerprint === '' ? readStack(stacktrace) : NOTHING_READ
}

/**
 * Returns what source maps and later rules look at in an exception of a chain. Messages, arguments and addresses are left out: they
 * differ from occurrence to occurrence, and there would be a variant for each.
 */
function placesOf({ relation, type, frames }: StackLink): readonly unknown[] {
  return [
    relation,
    type,
    ...frames.map(({ function: name, module, file, line, column }) => [name, module, file, line, column]),
  ]
}

/** Returns the texts that are hashed. */
function partsOf({ by, fingerprint = '', type = '', chain = [], lines = [], message }: Basis): readonly string[] {
  if (by === 'client') return [by, fingerprint]
  const texts = by === 'frames' ? chain.map(textOfLink) : [by, type, ...lines]
  return message === undefined ? texts : [...texts, message]
}

function textOfLink({ type, frames }: { readonly type: string; readonly frames: readonly string[] }): string {
  return JSON.stringify([type, ...frames])
}

function isOfApplication(frame: StackFrame): boolean {
  return frame.inApp
}

/** Returns the type and the frames of an exception that count. */
function describeLink(
  language: StackLanguage,
  { frames }: StackLink,
  type: string,
  isKnown: (frame: StackFrame) => boolean = () => true,
): { readonly type: string; readonly frames: readonly string[] } {
  // Recursion: a call counts once, however deep.
  const named = new Set<string>()
  for (const frame of frames) {
    if (isKnown(frame)) named.add(describeFrame(language, frame))
    if (named.size === FRAME_COUNT) break
  }
  return { type: normalizeName(type), frames: [...named] }
}

function describeFrame(language: StackLanguage, frame: StackFrame): string {
  const { module, file, line, column } = frame
  const name = normalizeFunction(language, frame.function)
  if (isQualified(language, name)) return name
  const place = file === '' ? module : normalizeFile(file)
  const isUnnamed = language === 'javascript' && name.replace(/^.*\./, '').length <= 2
  // The next build gives the function another letter.
  if (isUnnamed && (column > MINIFIED_COLUMN || hasHash(file))) return `${place}:${line}:${column}`
  return `${name} ${place}`
}

/** Returns whether a name has its class or package, so that the file adds nothing. It is not in each build. */
function isQualified(language: StackLanguage, name: string): boolean {
  switch (language) {
    case 'java':
    case 'dotnet':
    case 'go':
      return name.includes('.')
    case 'rust':
      return name.includes('::')
    default:
      return false
  }
}

/** The title of a failed span that has a route (`titleOfFailure`). Its message tells no failure from another. */
const ROUTE_TITLE = /^[A-Z]{3,} \//
/** The end of a title with a status, which stays. */
const OUTCOME = / → \S+$/

/** A file and a line. Lines of a stack in an unknown format that have them are its frames. */
const PLACE = /[\w>]\.[a-z]{1,8}:\d/i

/** Returns the type, and the frames of a stack in an unknown format, else its first lines, else the message. */
function withoutReader(type: string, message: string, stacktrace: string): Basis {
  const lines = stacktrace
    .split('\n', 200)
    .map(line => line.slice(0, 1_024).trimEnd())
    .filter(line => line !== '')
  if (lines.length === 0) {
    const title = OUTCOME.test(type) ? type : normalizeName(type)
    if (ROUTE_TITLE.test(type)) return { by: 'title', type: title }
    return { by: 'message', type: title, message: normalizeMessage(message) }
  }
  const places = lines.filter(line => PLACE.test(line))
  // The first line can be a message with a place.
  if (places.length > 1 && places[0] === lines[0] && !lines[0]?.startsWith(' ')) places.shift()
  const counted = places.length > 0 ? firstOf(places, withoutNumbers) : firstOf(lines, normalizeMessage)
  return { by: 'lines', type, lines: counted }
}

function firstOf(lines: readonly string[], normalize: (line: string) => string): string[] {
  return lines.slice(0, LINE_COUNT).map(line => normalize(line.trim()))
}

/** Replaces lines, versions and addresses: numbers that do not begin within a word. */
function withoutNumbers(line: string): string {
  return line.replace(/(?<![\p{L}_/\d])\d[\w.]*/gu, '*')
}
