import { z } from 'zod'

const MAX_PATH_BYTES = 1_024

/** The build-relative path of a source map (CONTRACT 4.5). */
export const sourceMapPathSchema = z
  .string({ error: issue => (issue.input === undefined ? 'is required' : 'must be a string') })
  .superRefine((path, context) => {
    const fault = pathFault(path)
    if (fault !== undefined) context.addIssue({ code: 'custom', message: fault })
  })
  .meta({
    description: `The path of the map in its build: relative, separated by \`/\`, without \`..\`, at most ${MAX_PATH_BYTES} bytes.`,
    minLength: 1,
    maxLength: MAX_PATH_BYTES,
  })

/** The rule that a path breaks. */
function pathFault(path: string): string | undefined {
  if (path === '') return 'must not be empty'
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) return `must have at most ${MAX_PATH_BYTES} bytes`
  if (!path.isWellFormed()) return 'must be well-formed Unicode'
  if (path.includes('\0')) return 'must not hold NUL'
  if (path.includes('\\')) return 'must be separated by /'
  if (path.startsWith('/')) return 'must be relative'
  if (path.split('/').includes('..')) return 'must not hold a part ..'
  return undefined
}
