/** Messages from the console to the stage, in which recordings are played. Times are Unix ms, as the recording states them. */
export type StageOrder =
  /** Begins again: everything that waits is dropped, and the picture stays until the first full snapshot replaces it. */
  | { readonly kind: 'begin'; readonly run: number; readonly target: number }
  /** JSON lines of events, in the order of time. All events before `through` are then known. */
  | { readonly kind: 'portion'; readonly run: number; readonly lines: Blob; readonly through: number }
  /** Plays to a time. */
  | { readonly kind: 'advance'; readonly run: number; readonly target: number; readonly isPlaying: boolean }

/** Messages from the stage. It handles texts of unknown clients, so that the console checks them as if they came from one. */
export type StageReport =
  | { readonly kind: 'ready' }
  | {
      readonly kind: 'progress'
      readonly run: number
      /** Time up to which the picture is complete. */
      readonly reached: number
      /** Whether a full snapshot of this run is shown. */
      readonly hasPicture: boolean
      /** Time of the first full snapshot that was read in this run. */
      readonly firstPictureAt: number | undefined
      /** Whether the target is reached, or everything that was sent is played. */
      readonly isIdle: boolean
      /** Portions that are not read yet, and bytes of events that are not played yet. */
      readonly waitingPortions: number
      readonly waitingBytes: number
    }
  | { readonly kind: 'size'; readonly width: number; readonly height: number }
  | { readonly kind: 'recorded'; readonly run: number; readonly entries: readonly RecordedEntry[] }
  /** Times at which the user did something, at most one a second. */
  | { readonly kind: 'activity'; readonly run: number; readonly times: readonly number[] }
  /** Events that could not be played. */
  | { readonly kind: 'refused'; readonly count: number }

/** A line of the console, or a request, that was recorded. */
export interface RecordedEntry {
  readonly at: number
  readonly kind: 'console' | 'network'
  /** Whether it is an error: `console.error`, or a request that failed. */
  readonly isError: boolean
  readonly text: string
}

/** Most characters of the text of an entry. */
export const ENTRY_TEXT_MAX = 1_000
