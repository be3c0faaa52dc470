/** The life of this page in its browser, by which other pages know whether it still sends what it has left in the spool. */
export interface PageLife {
  readonly id: string
  /** Resolves when other pages can see that this one lives. */
  readonly isKnown: Promise<void>
  /** Returns whether the page with this id lives. Unknown where the browser has no locks. */
  lives(): Promise<ReadonlySet<string> | undefined>
  /** Runs the work unless another page of the origin runs it. */
  alone(work: () => Promise<void>): Promise<void>
  /** Ends the life. A page that a browser keeps for "back" begins again. */
  end(): void
  begin(): void
}

const LIFE = 'penstock:page:'

/** Begins the life of a page. `scope` separates the keys of one origin. */
export function beginLife(id: string, scope: string): PageLife {
  // Only pages with a secure context have locks.
  const locks = navigator.locks as LockManager | undefined
  let end: () => void = () => {}
  function begin(): Promise<void> {
    if (locks === undefined) return Promise.resolve()
    return new Promise(resolve => {
      const ended = new Promise<void>(finish => {
        end = finish
      })
      locks
        .request(LIFE + id, () => {
          resolve()
          return ended
        })
        .catch(() => resolve())
    })
  }
  return {
    id,
    isKnown: begin(),
    async lives() {
      if (locks === undefined) return undefined
      const { held = [] } = await locks.query()
      return new Set(held.flatMap(({ name = '' }) => (name.startsWith(LIFE) ? [name.slice(LIFE.length)] : [])))
    },
    async alone(work) {
      if (locks === undefined) return work()
      await locks.request(`penstock:resume:${scope}`, { ifAvailable: true }, lock =>
        lock === null ? undefined : work(),
      )
    },
    end: () => end(),
    begin: () => void begin(),
  }
}
