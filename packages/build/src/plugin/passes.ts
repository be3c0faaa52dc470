import type { PenstockOptions } from '../options.ts'
import type { BuildOutput } from '../upload/find-build-files.ts'

/** Dependencies of the passes of a release. */
interface PassesDeps {
  readonly upload: (options: PenstockOptions, outputs: readonly BuildOutput[]) => Promise<unknown>
  readonly warn: (text: string) => void
}

/**
 * The passes of a process that build one release, such as those of client and server. A completion replaces the maps of its
 * release, so all of them are uploaded together: when no pass is open and the expected number has ended.
 */
export class Passes {
  readonly #deps: PassesDeps
  #options: PenstockOptions = {}
  readonly #open = new Set<object>()
  #outputs: BuildOutput[] = []
  #ended = 0
  #hasFailed = false
  #uploadedFiles: ReadonlySet<string> = new Set()

  constructor(deps: PassesDeps) {
    this.#deps = deps
  }

  /** Takes the options of another instance of the plugin, which may have another receiver of reports. */
  use(options: PenstockOptions): void {
    this.#options = options
  }

  /** Begins a pass, or holds the upload back until `end`. */
  begin(pass: object): void {
    this.#open.add(pass)
  }

  /** Adds what a pass has written. */
  add(output: BuildOutput): void {
    this.#outputs.push(output)
  }

  /** The pass has failed, so nothing is uploaded. A pass that has ended fails if its upload does, which changes nothing. */
  fail(pass: object): void {
    if (this.#open.has(pass)) this.#hasFailed = true
  }

  /** Ends a pass, and uploads if it was the last. A second call for one pass changes nothing. */
  async end(pass: object, { isPass = true }: { readonly isPass?: boolean } = {}): Promise<void> {
    if (!this.#open.delete(pass)) return
    if (isPass) this.#ended++
    if (this.#open.size > 0 || (this.#ended < (this.#options.passes ?? 1) && !this.#hasFailed)) return
    const [outputs, hasFailed] = [this.#outputs, this.#hasFailed]
    this.#outputs = []
    this.#ended = 0
    this.#hasFailed = false
    if (hasFailed || outputs.length === 0) return
    this.#warnIfReplaced(outputs)
    await this.#deps.upload(this.#options, outputs)
  }

  #warnIfReplaced(outputs: readonly BuildOutput[]): void {
    const files = new Set(outputs.flatMap(({ files = [] }) => files))
    const isOther = this.#uploadedFiles.size > 0 && [...files].every(file => !this.#uploadedFiles.has(file))
    this.#uploadedFiles = files
    if (!isOther) return
    this.#deps.warn(
      'the maps of an earlier pass are replaced: set the option passes to the number of passes of the build',
    )
  }
}
