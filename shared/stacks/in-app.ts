import type { StackFrame, StackLanguage } from './stack.ts'

/** Whether a frame is code of the application. */
export function isInApp(_language: StackLanguage, { file }: Pick<StackFrame, 'function' | 'module' | 'file'>): boolean {
  return !/node_modules|^node:|site-packages|\/vendor\/|\/gems\//.test(file)
}
