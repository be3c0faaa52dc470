/** Languages whose stacks are read. */
export type StackLanguage = 'javascript' | 'java' | 'python' | 'go' | 'dotnet' | 'ruby' | 'php' | 'rust'

/** A frame of a stack, as it was sent. Texts are empty and numbers 0 where the stack does not state them. */
export interface StackFrame {
  /** The function with its class, without arguments: `Cart.total`, `(*Cart).Total`, `com.shop.Cart.total`. */
  readonly function: string
  /** Module, package or assembly where the frame names one beside function and file: `gorm.io/gorm`, `java.base@17.0.1`. */
  readonly module: string
  /** File, path or URL. */
  readonly file: string
  /** Line from 1. */
  readonly line: number
  /** Column from 1. */
  readonly column: number
  /** Whether it is code of the application: not of the runtime, a dependency or an SDK, and not generated. */
  readonly inApp: boolean
  /** The lines that it was read from, without indentation. */
  readonly text: string
}

/** How an exception belongs to the one before it. `member`: one of a group. */
type StackRelation = 'cause' | 'context' | 'suppressed' | 'member'

/** One exception of a chain. */
export interface StackLink {
  /** Undefined for the exception that was reported. */
  readonly relation?: StackRelation
  /** Empty where the text states none. */
  readonly type: string
  readonly message: string
  /** Innermost first, at most 100. */
  readonly frames: readonly StackFrame[]
}

/** A stack that was read: the exception that was reported, then what it was made of, outermost first, at most 16. */
export interface ReadStack {
  /** Undefined if the format is unknown. There are no links then. */
  readonly language: StackLanguage | undefined
  readonly links: readonly StackLink[]
}
