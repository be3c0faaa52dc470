import { Presets, SingleBar } from 'cli-progress'
import { MIB } from '../schemas/units.ts'
import type { UploadProgress } from './sourcemaps/upload-build.ts'

const LINE_EVERY_MS = 5_000

/** Creates the progress display: a bar on a terminal, and a line every five seconds if `plain` is set (logs and CI). */
export function createUploadProgress(
  output: NodeJS.WritableStream,
  options: { plain: boolean; now: () => number },
): UploadProgress {
  return options.plain ? createPlainProgress(output, options.now) : createBarProgress(output)
}

function createPlainProgress(output: NodeJS.WritableStream, now: () => number): UploadProgress {
  let count: { what: string; total: number; done: number; bytes: number; printedAt: number } | undefined
  return {
    note: line => void output.write(`${line}\n`),
    begin(what, total) {
      count = { what, total, done: 0, bytes: 0, printedAt: now() }
      output.write(`${what}: ${total}\n`)
    },
    advance(bytes) {
      if (!count) return
      count.done++
      count.bytes += bytes
      if (now() - count.printedAt < LINE_EVERY_MS && count.done < count.total) return
      count.printedAt = now()
      output.write(`${count.what}: ${count.done} of ${count.total}, ${(count.bytes / MIB).toFixed(1)} MiB\n`)
    },
    end() {
      count = undefined
    },
  }
}

function createBarProgress(output: NodeJS.WritableStream): UploadProgress {
  let bar: SingleBar | undefined
  let bytes = 0
  return {
    note(line) {
      // The bar is redrawn below the line.
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
