import { Presets, SingleBar } from 'cli-progress'

/** Tells a person, or a log, how far an upload is. Everything goes to stderr. */
export interface UploadProgress {
  note(line: string): void
  /** Begins counting up to so many. */
  begin(what: string, total: number): void
  advance(bytes: number): void
  /** Ends the counting, complete or not. */
  end(): void
}

export interface ProgressOutput {
  write(text: string): unknown
  readonly isTTY?: boolean | undefined
}

const LINE_EVERY_MS = 5_000
const MIB = 1024 * 1024

/** A bar on a terminal; elsewhere, and in CI, a line of its own now and then. */
export function createUploadProgress(
  output: ProgressOutput & NodeJS.WritableStream,
  options: { plain: boolean; now: () => number },
): UploadProgress {
  return options.plain ? createPlainProgress(output, options.now) : createBarProgress(output)
}

export function createPlainProgress(output: Pick<ProgressOutput, 'write'>, now: () => number): UploadProgress {
  let counted: { what: string; total: number; done: number; bytes: number; toldAt: number } | undefined
  return {
    note: line => void output.write(`${line}\n`),
    begin(what, total) {
      counted = { what, total, done: 0, bytes: 0, toldAt: now() }
      output.write(`${what}: ${total}\n`)
    },
    advance(bytes) {
      if (!counted) return
      counted.done++
      counted.bytes += bytes
      if (now() - counted.toldAt < LINE_EVERY_MS && counted.done < counted.total) return
      counted.toldAt = now()
      output.write(`${counted.what}: ${counted.done} of ${counted.total}, ${(counted.bytes / MIB).toFixed(1)} MiB\n`)
    },
    end() {
      counted = undefined
    },
  }
}

function createBarProgress(output: NodeJS.WritableStream): UploadProgress {
  let bar: SingleBar | undefined
  let bytes = 0
  return {
    note(line) {
      // The bar is drawn again below the line.
      output.write(bar ? `\r\x1b[K${line}\n` : `${line}\n`)
      bar?.render()
    },
    begin(what, total) {
      bytes = 0
      bar = new SingleBar(
        { format: `${what} [{bar}] {value}/{total} {mib} MiB`, stream: output, forceRedraw: true, gracefulExit: false },
        Presets.shades_classic,
      )
      bar.start(total, 0, { mib: '0.0' })
    },
    advance(size) {
      bytes += size
      bar?.increment(1, { mib: (bytes / MIB).toFixed(1) })
    },
    end() {
      bar?.stop()
      bar = undefined
    },
  }
}
