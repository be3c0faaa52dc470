import { hash } from 'node:crypto'
import { base32 } from '../../shared/ids/base32.ts'
import { isRuntime } from '../../shared/stacks/in-app.ts'
import { hasHash, normalizeFile } from '../../shared/stacks/normalize-file.ts'
import { normalizeFunction } from '../../shared/stacks/normalize-function.ts'
import { normalizeMessage, normalizeName } from '../../shared/stacks/normalize-message.ts'
import { readStack } from '../../shared/stacks/read-stack.ts'
import type { ReadStack, StackFrame, StackLanguage, StackLink } from '../../shared/stacks/stack.ts'
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
  readonly type: string
  readonly message: string
  readonly stacktrace: string
  /** The value of `exception.fingerprint`, or empty. */
  readonly fingerprint?: string
}

/** The id of a finding, and whether the message counted. */
interface Identity {
  readonly id: string
  readonly usesMessage: boolean
}

/**
 * Returns the finding of an exception (docs/api/findings.md#fingerprint). Its id is `fnd_` and 26 base32 characters of SHA-256
 * over workspace, surface, service and fingerprint.
 * `stacktrace` is the part of the stack that is read (`stackToRead`).
 */
export function identify(exception: ExceptionIdentity, stacktrace = stackToRead(exception)): Identity {
  const { workspaceId, surfaceId, serviceName, fingerprint = '' } = exception
  const [parts, usesMessage] =
    fingerprint === ''
      ? fingerprintOf(readStack(stacktrace), { ...exception, stacktrace })
      : [['client', fingerprint], false]
  const digest = hash('sha256', JSON.stringify([workspaceId, surfaceId, serviceName, ...parts]), 'buffer')
  return { id: `fnd_${base32(digest, ID_LENGTH)}`, usesMessage }
}

/**
 * Returns the texts that tell an exception from others, and whether its message is among them. Frames may be mapped to their
 * sources or not.
 */
function fingerprintOf(
  { language, links }: ReadStack,
  { type, message, stacktrace }: Pick<ExceptionIdentity, 'type' | 'message' | 'stacktrace'>,
): readonly [parts: readonly string[], usesMessage: boolean] {
  if (language === undefined) return withoutReader(type, message, stacktrace)
  const all = links.filter(link => link.relation !== 'suppressed')
  const isOfLanguage = (frame: StackFrame) => isRuntime(language, frame)
  const known = [isOfApplication, (frame: StackFrame) => !isOfLanguage(frame)].find(isKnown =>
    all.some(({ frames }) => frames.some(isKnown)),
  )
  const parts = all.map((link, i) => describeLink(language, link, (i === 0 && type) || link.type, known))
  // The members of a group repeat.
  const chain = [...new Set(parts)].slice(0, LINK_COUNT)
  // Frames of the runtime alone do not tell one failure from another.
  return known === undefined ? [[...chain, normalizeMessage(message)], true] : [chain, false]
}

function isOfApplication(frame: StackFrame): boolean {
  return frame.inApp
}

/** Joins the type and the frames of an exception. */
function describeLink(
  language: StackLanguage,
  { frames }: StackLink,
  type: string,
  isKnown: (frame: StackFrame) => boolean = () => true,
): string {
  // Recursion: a call counts once, however deep.
  const named = new Set<string>()
  for (const frame of frames) {
    if (isKnown(frame)) named.add(describeFrame(language, frame))
    if (named.size === FRAME_COUNT) break
  }
  return JSON.stringify([normalizeName(type), ...named])
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

/** A file and a line. Lines of a stack in an unknown format that have them are its frames. */
const PLACE = /[\w>]\.[a-z]{1,8}:\d/i

/** Returns the type, and the frames of a stack in an unknown format, else its first lines, else the message. */
function withoutReader(type: string, message: string, stacktrace: string): readonly [readonly string[], boolean] {
  const lines = stacktrace
    .split('\n', 200)
    .map(line => line.slice(0, 1_024).trimEnd())
    .filter(line => line !== '')
  if (lines.length === 0) return [['message', normalizeName(type), normalizeMessage(message)], true]
  const places = lines.filter(line => PLACE.test(line))
  // The first line can be a message with a place.
  if (places.length > 1 && places[0] === lines[0] && !lines[0]?.startsWith(' ')) places.shift()
  if (places.length > 0) return [['places', type, ...firstOf(places, withoutNumbers)], false]
  return [['lines', type, ...firstOf(lines, normalizeMessage)], false]
}

function firstOf(lines: readonly string[], normalize: (line: string) => string): string[] {
  return lines.slice(0, LINE_COUNT).map(line => normalize(line.trim()))
}

/** Replaces lines, versions and addresses: numbers that do not begin within a word. */
function withoutNumbers(line: string): string {
  return line.replace(/(?<![\p{L}_/\d])\d[\w.]*/gu, '*')
}
