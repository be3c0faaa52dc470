import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type ParserPlugin, parse } from '@babel/parser'

/** Absolute path of the checkout, with a slash at its end. */
export const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** A comment, a text or a paragraph, and where it begins. */
interface Prose {
  readonly file: string
  readonly line: number
  readonly text: string
}

/** Returns the files under version control, relative to the checkout. Generated code is left out. */
export function trackedFiles(root = ROOT): string[] {
  const listed = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8',
  })
  return listed.split('\n').filter(file => file !== '' && !file.includes('/generated/') && existsSync(root + file))
}

/** Returns every comment and every text of more than one word in a file, and every paragraph of a page. */
export function proseOf(file: string): Prose[] {
  const text = readFileSync(ROOT + file, 'utf8')
  if (/\.(tsx?|mjs|js)$/.test(file)) return proseOfCode(file, text)
  if (/\.(sql|lua)$/.test(file)) return commentsByMark(file, text, /^\s*--\s?/)
  if (/\.(md)$/.test(file)) return paragraphs(file, text)
  if (/\.(yaml|yml|example|editorconfig)$|^\.ci\/run$|\.sh$/.test(file))
    return commentsByMark(file, text, /^\s*#+!?\s?/)
  return []
}

function proseOfCode(file: string, code: string): Prose[] {
  const { comments, tokens } = parse(code, {
    sourceType: 'module',
    plugins: pluginsOf(file),
    tokens: true,
    errorRecovery: true,
  })
  const found = mergeLineComments(file, comments ?? [])
  for (const token of (tokens ?? []) as Token[]) {
    const value = typeof token.value === 'string' ? token.value : ''
    if (!TEXT_TOKENS.has(token.type.label ?? '') || !/\p{L} \p{L}/u.test(value)) continue
    // Parts of templates, and test names that continue those of their group, begin in the middle of a sentence.
    const isSentence = token.type.label === 'string' && /^[^\p{Ll}]/u.test(value)
    const text = isSentence ? oneLine(value) : `…${oneLine(value)}`
    found.push({ file, line: token.loc.start.line, text })
  }
  return found
}

/** Returns the plugins with which a file is parsed. */
export function pluginsOf(file: string): ParserPlugin[] {
  if (file.endsWith('.tsx')) return ['typescript', 'jsx']
  return file.endsWith('.ts') ? ['typescript'] : []
}

interface Token {
  readonly type: { readonly label?: string }
  readonly value: unknown
  readonly loc: { readonly start: { readonly line: number } }
}

const TEXT_TOKENS = new Set(['string', 'jsxText', 'template', '...`', '...${', '`...`', '}...`', '}...${'])

interface Comment {
  readonly type: string
  readonly value: string
  readonly loc?: { readonly start: { readonly line: number; readonly column: number } } | null | undefined
}

/** Joins the comments of consecutive lines: a sentence may run over several of them. */
function mergeLineComments(file: string, comments: readonly Comment[]): Prose[] {
  const found: { file: string; line: number; text: string }[] = []
  let lastLine = -1
  let lastColumn = -1
  for (const { type, value, loc } of comments) {
    const line = loc?.start.line ?? 0
    const column = loc?.start.column ?? 0
    const previous = found.at(-1)
    if (type === 'CommentLine' && previous && line === lastLine + 1 && column === lastColumn) {
      previous.text = `${previous.text} ${oneLine(value)}`
    } else {
      found.push({ file, line, text: oneLine(value.replaceAll(/^\s*\*+ ?/gm, '')) })
    }
    lastLine = type === 'CommentLine' ? line : -1
    lastColumn = column
  }
  return found
}

function commentsByMark(file: string, text: string, mark: RegExp): Prose[] {
  const found: { file: string; line: number; text: string }[] = []
  let open = false
  for (const [i, line] of text.split('\n').entries()) {
    const isComment = mark.test(line)
    const words = oneLine(line.replace(mark, ''))
    const previous = found.at(-1)
    if (isComment && open && previous) previous.text = `${previous.text} ${words}`
    else if (isComment) found.push({ file, line: i + 1, text: words })
    open = isComment
  }
  return found
}

/** Paragraphs, items and rows of Markdown, without its code blocks. */
function paragraphs(file: string, text: string): Prose[] {
  const found: { file: string; line: number; text: string }[] = []
  let inCode = false
  let open = false
  for (const [i, line] of text.split('\n').entries()) {
    if (line.trimStart().startsWith('```')) inCode = !inCode
    const starts = /^\s*([-*|#>]|\d+\.)/.test(line)
    const words = oneLine(line.replace(/^\s*([-*#>]+|\d+\.)\s*/, ''))
    if (inCode || words === '' || words.startsWith('```')) {
      open = false
      continue
    }
    const previous = found.at(-1)
    if (open && !starts && previous) previous.text = `${previous.text} ${words}`
    else found.push({ file, line: i + 1, text: words })
    open = true
  }
  return found
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim()
}
