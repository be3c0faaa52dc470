import { readStack } from '../../shared/stacks/read-stack.ts'

/** Reads a stack and writes the language, then a line for each exception and each frame. */
export function outlineStack(text: string): string[] {
  const { language, links } = readStack(text)
  const outline: string[] = [language ?? 'none']
  for (const { relation = '-', type, message, frames } of links) {
    outline.push(`${relation} ${type}: ${message}`)
    for (const { function: name, file, line, column } of frames) {
      outline.push(`${name} ${[file, line, column].filter(part => part !== 0).join(':')}`)
    }
  }
  return outline
}
