import { signal } from '@preact/signals'
import { MIB } from '../../schemas/units.ts'
import type { Fault } from '../api/client.ts'
import type { RecordedEntry, StageReport } from '../stage/messages.ts'
import { merged } from './entries.ts'
import { Feed } from './feed.ts'
import { Activity } from './idle.ts'
import { type RecordedWindow, type Recording, seedOf, windowAt } from './recording.ts'
import { DEFAULT_SIZE, openStage, type PictureSize, type StageChannel } from './stage-channel.ts'

/** Recorded time that is read ahead of the picture, at normal speed. */
const AHEAD_MS = 20_000
/** How far the picture may be behind the clock before the clock waits. */
const LAG_MS = 250
/** Portions and bytes that wait in the stage, at which no more are read. */
const WAITING_MAX = { portions: 3, bytes: 8 * MIB }
const LONGEST_TICK_MS = 100
/** Speeds that can be chosen. */
export const SPEEDS: readonly number[] = [1, 2, 4, 8, 16]

/** A time that the player does not show. */
interface Skipped {
  readonly from: number
  readonly to: number
  readonly without: 'activity' | 'picture'
}

/** Plays a recording: owns the clock, reads events ahead of it and has the stage draw them. Times are Unix ms. */
export class Player {
  readonly recording: Recording
  readonly time = signal(0)
  readonly isPlaying = signal(false)
  readonly speed = signal(1)
  readonly skipsIdle = signal(true)
  /** The window that the user has chosen, or undefined for the one in which something happens. */
  readonly chosen = signal<string | undefined>(undefined)
  readonly shown = signal<RecordedWindow | undefined>(undefined)
  readonly size = signal<PictureSize>(DEFAULT_SIZE)
  /** Whether the picture is not yet that of the time. */
  readonly isWaiting = signal(true)
  readonly hasPicture = signal(false)
  readonly fault = signal<Fault | undefined>(undefined)
  readonly hasFailed = signal(false)
  readonly refused = signal(0)
  readonly entries = signal<readonly RecordedEntry[]>([])
  /** The time that was skipped last and what it is without, for people who do not see it. */
  readonly skipped = signal<Skipped | undefined>(undefined)
  /** Times of errors, ordered, which are never skipped. */
  errorTimes: readonly number[] = []

  readonly #sessionId: string
  readonly #activity = new Activity()
  #stage: StageChannel | undefined
  #feed: Feed | undefined
  #run = 0
  /** Position of the chunk with which the run begins. */
  #seed = -1
  #runFrom = 0
  #reached = 0
  #waiting = { portions: 0, bytes: 0 }
  #lastTick: number | undefined
  #frame = 0

  constructor(sessionId: string, recording: Recording) {
    this.#sessionId = sessionId
    this.recording = recording
  }

  /** Begins to play in a frame, at a time. */
  attach(frame: HTMLIFrameElement, at: number): void {
    this.#stage = openStage(
      frame,
      report => this.#follow(report),
      () => {
        this.hasFailed.value = true
      },
    )
    this.seek(at)
  }

  /** Ends all of it. */
  close(): void {
    this.pause()
    this.#feed?.close()
    this.#stage?.close()
  }

  play(): void {
    if (this.isPlaying.value) return
    if (this.time.value >= this.recording.endMs) this.seek(this.recording.firstPictureMs)
    this.isPlaying.value = true
    this.#lastTick = undefined
    this.#frame = requestAnimationFrame(now => this.#tick(now))
  }

  pause(): void {
    if (!this.isPlaying.value) return
    this.isPlaying.value = false
    cancelAnimationFrame(this.#frame)
    this.#advance()
  }

  toggle(): void {
    if (this.isPlaying.value) this.pause()
    else this.play()
  }

  /** Reads again what could not be read. */
  retry(): void {
    if (this.shown.value) this.#begin(this.shown.value, seedOf(this.shown.value, this.time.value))
    this.#advance()
  }

  /** Chooses a window to be shown, or undefined for the one in which something happens. */
  choose(id: string | undefined): void {
    this.chosen.value = id
    this.#show(this.time.value)
  }

  /** Goes to a time, from the nearest full snapshot before it unless the picture is nearer. */
  seek(to: number): void {
    const { startMs, endMs } = this.recording
    const at = Math.min(Math.max(to, startMs), endMs)
    const isBack = at < this.time.value
    this.time.value = at
    this.#show(at, isBack)
  }

  #show(at: number, isBack = false): void {
    const { windows } = this.recording
    const chosen = windows.find(({ id }) => id === this.chosen.value)
    const window = chosen ?? windowAt(this.recording, at, this.shown.value?.id)
    if (window === undefined) return
    const seed = seedOf(window, at)
    const isOther = window !== this.shown.value
    const canGoOn = !isOther && !isBack && this.#seed >= 0 && at >= this.#runFrom && !this.#isNearer(window, seed)
    if (!canGoOn) this.#begin(window, seed)
    this.#advance()
  }

  /** Reports whether a snapshot is nearer than the events that were requested. */
  #isNearer({ chunks }: RecordedWindow, seed: number): boolean {
    return (chunks[seed]?.firstMs ?? Number.NEGATIVE_INFINITY) > (this.#feed?.asked ?? 0)
  }

  /** Begins again with a chunk, or with the first one that has a snapshot if none has one before the time. */
  #begin(window: RecordedWindow, seed: number): void {
    const first = seed >= 0 ? seed : window.chunks.findIndex(({ hasSnapshot }) => hasSnapshot)
    this.#feed?.close()
    this.#feed = undefined
    this.#run++
    this.#seed = first
    this.#reached = 0
    this.#runFrom = window.chunks[first]?.firstMs ?? Number.POSITIVE_INFINITY
    this.#waiting = { portions: 0, bytes: 0 }
    this.shown.value = window
    this.hasPicture.value = false
    this.fault.value = undefined
    this.#activity.begin(this.#runFrom)
    const run = this.#run
    this.#stage?.send({ kind: 'begin', run, target: this.time.value })
    if (first < 0) return
    this.#feed = new Feed(this.#sessionId, window, first, {
      portion: ({ lines, through }) => {
        this.#waiting.portions++
        this.#stage?.send({ kind: 'portion', run, lines, through })
        this.#advance()
      },
      fault: fault => {
        this.fault.value = fault
      },
    })
  }

  /** Reads what is due, and has the stage play to the time. */
  #advance(): void {
    const at = this.time.value
    const isBehind = this.#isBehind(at)
    this.isWaiting.value = isBehind
    const { portions, bytes } = this.#waiting
    if (at >= this.#runFrom && portions < WAITING_MAX.portions && (bytes < WAITING_MAX.bytes || isBehind)) {
      // Events after the time are read when the picture is there: both would take longer at once.
      this.#feed?.want(at, isBehind ? at : at + AHEAD_MS * this.speed.value)
    }
    this.#stage?.send({ kind: 'advance', run: this.#run, target: at, isPlaying: this.isPlaying.value })
  }

  /** Reports whether there is something to see that is not drawn yet. */
  #isBehind(at: number): boolean {
    return at >= this.#runFrom && this.#reached < at - LAG_MS
  }

  #tick(now: number): void {
    if (!this.isPlaying.value) return
    this.#frame = requestAnimationFrame(next => this.#tick(next))
    const elapsed = Math.min(now - (this.#lastTick ?? now), LONGEST_TICK_MS)
    this.#lastTick = now
    const { time, shown, recording } = this
    if (!this.#isBehind(time.value)) {
      const next = Math.min(time.value + elapsed * this.speed.value, recording.endMs)
      const idleEnd = this.skipsIdle.value && shown.value ? this.#idleEnd(next, shown.value) : undefined
      if (idleEnd !== undefined) {
        this.skipped.value = { from: next, to: idleEnd, without: 'activity' }
        this.seek(idleEnd)
      } else {
        time.value = next
        if (this.chosen.value === undefined && windowAt(recording, next, shown.value?.id) !== shown.value)
          this.#show(next)
      }
      if (time.value >= recording.endMs) this.pause()
    }
    this.#advance()
  }

  #idleEnd(at: number, window: RecordedWindow): number | undefined {
    const { windows, endMs } = this.recording
    // Another window in which something happens is shown instead.
    const others = this.chosen.value === undefined ? windows.filter(other => other !== window) : []
    const starts = others.flatMap(
      ({ chunks }) => chunks.find(({ isActive, lastMs }) => isActive && lastMs > at)?.firstMs ?? [],
    )
    const times = [...this.errorTimes.filter(time => time > at), ...starts.map(start => Math.max(start, at + 1))]
    return this.#activity.skipFrom(
      at,
      window,
      times.sort((a, b) => a - b),
      endMs,
    )
  }

  #follow(report: StageReport): void {
    switch (report.kind) {
      case 'ready':
        // It may come late, on a slow connection.
        this.hasFailed.value = false
        return
      case 'size':
        this.size.value = { width: report.width, height: report.height }
        return
      case 'refused':
        this.refused.value += report.count
        return
      case 'recorded':
        this.entries.value = merged(this.entries.value, report.entries)
        return
      case 'activity':
        if (report.run === this.#run) this.#activity.add(report.times)
        return
      case 'progress':
        if (report.run === this.#run) this.#progress(report)
    }
  }

  #progress(report: StageReport & { kind: 'progress' }): void {
    const { reached, hasPicture, firstPictureAt, isIdle, waitingPortions, waitingBytes } = report
    this.#reached = Math.max(this.#reached, reached)
    this.hasPicture.value = hasPicture
    this.#waiting = { portions: waitingPortions, bytes: waitingBytes }
    if (waitingPortions === 0 && this.#feed) this.#activity.knowUntil(this.#feed.asked)
    const at = this.time.value
    const isAfterSeed = this.#reached >= at && at >= this.#runFrom
    if (isIdle && !hasPicture && isAfterSeed && this.shown.value) {
      // The snapshot of the chunk comes after the time: the one before it is needed.
      const before = this.shown.value.chunks.findLastIndex(({ hasSnapshot }, i) => hasSnapshot && i < this.#seed)
      if (before >= 0) this.#begin(this.shown.value, before)
      else if (firstPictureAt !== undefined && firstPictureAt > at) {
        // Recorders send events before their first snapshot, and nothing before that can be shown.
        this.skipped.value = { from: at, to: firstPictureAt, without: 'picture' }
        this.seek(firstPictureAt)
        this.isWaiting.value = true
        return
      }
    }
    if (!this.isPlaying.value || isIdle) this.isWaiting.value = this.#isBehind(at)
    if (this.#isBehind(at) && isIdle) this.#advance()
    else if (!this.isPlaying.value && isIdle && waitingPortions === 0) this.#feed?.want(at, at + AHEAD_MS)
  }
}
