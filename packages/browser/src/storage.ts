/** Texts by name that outlive a page. Never throws. */
export interface TextStorage {
  get(name: string): string | undefined
  set(name: string, value: string): void
  remove(name: string): void
}

/**
 * Returns the storage that pages of an origin share (`local`), or that the pages of a tab have after each other (`session`). A
 * text that the browser refuses to keep, because the storage is blocked or full, lasts as long as the page.
 */
export function openStorage(area: 'local' | 'session' | 'none'): TextStorage {
  const kept = new Map<string, string>()
  const storage = browserStorage(area)
  return {
    get(name) {
      try {
        return storage?.getItem(name) ?? kept.get(name)
      } catch {
        return kept.get(name)
      }
    },
    set(name, value) {
      kept.set(name, value)
      try {
        storage?.setItem(name, value)
      } catch {
        // It is kept in the page.
      }
    },
    remove(name) {
      kept.delete(name)
      try {
        storage?.removeItem(name)
      } catch {
        // It is not readable either.
      }
    },
  }
}

function browserStorage(area: 'local' | 'session' | 'none'): Storage | undefined {
  try {
    if (area === 'none') return undefined
    return area === 'local' ? localStorage : sessionStorage
  } catch {
    return undefined
  }
}
