import { readDotnet } from './languages/dotnet.ts'
import { readGo } from './languages/go.ts'
import { readJava } from './languages/java.ts'
import { readJavascript } from './languages/javascript.ts'
import { readPhp } from './languages/php.ts'
import { readPython } from './languages/python.ts'
import { readRuby } from './languages/ruby.ts'
import { readRust } from './languages/rust.ts'
import { linesOf, type StackReader } from './lines.ts'
import type { ReadStack, StackLanguage, StackLink } from './stack.ts'

const MAX_LINKS = 16

/** Readers. The first reader has a line that several can read. */
const READERS: readonly (readonly [StackLanguage, StackReader])[] = [
  ['python', readPython],
  ['ruby', readRuby],
  ['php', readPhp],
  ['go', readGo],
  ['rust', readRust],
  ['java', readJava],
  ['dotnet', readDotnet],
  ['javascript', readJavascript],
]

/** Reads a stack (docs/api/findings.md#stacks). Takes time linear in its length for any text. */
export function readStack(text: string): ReadStack {
  const lines = linesOf(text)
  const stacks = READERS.flatMap(([language, read]) => {
    const links = read(lines)
    return links === undefined ? [] : [{ language, links: links.slice(0, MAX_LINKS) }]
  })
  return (stacks.length > 1 ? outermost(lines, stacks) : stacks[0]) ?? { language: undefined, links: [] }
}

/**
 * Chooses between languages. A message can quote a stack of another language, and its own frames follow then. Only Python
 * prints the message after the frames, below a heading.
 */
function outermost(lines: readonly string[], stacks: readonly ReadStack[]): ReadStack | undefined {
  const heading = lines.find(line => line !== '')?.trim() ?? ''
  if (heading.endsWith('Traceback (most recent call last):')) {
    const python = stacks.find(({ language }) => language === 'python' || language === 'ruby')
    if (python !== undefined && !heading.includes(': Traceback')) return python
  }
  const texts = stacks.map(({ links }) => new Set(links.flatMap(linesOfFrames)))
  for (const line of lines.toReversed()) {
    const found = texts.findIndex(own => own.has(line.replace(/ \{$/, '').trim()))
    if (found >= 0) return stacks[found]
  }
  return stacks[0]
}

function linesOfFrames({ frames }: StackLink): string[] {
  return frames.flatMap(({ text }) => text.split('\n'))
}
