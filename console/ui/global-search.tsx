import { useEffect, useRef, useState } from 'preact/hooks'
import { Later } from './later.tsx'

const loadSearch = async () => (await import('./search-dialog.tsx')).SearchDialog

/** A button, and the keys Ctrl K or ⌘ K, for a dialog that leads from any id or text to the page that it means. */
export function GlobalSearch() {
  const dialog = useRef<HTMLDialogElement>(null)
  const [isOpen, setOpen] = useState(false)
  const open = () => {
    if (dialog.current?.open) return
    setOpen(true)
    dialog.current?.showModal()
  }
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.key !== 'k' || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return
      event.preventDefault()
      open()
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  }, [])
  return (
    <>
      <button type="button" class="plain" aria-keyshortcuts="Control+K Meta+K" onClick={open}>
        Search
      </button>
      <dialog ref={dialog} class="search" aria-label="Search everything" onClose={() => setOpen(false)}>
        {isOpen && <Later load={loadSearch} props={{ dialog }} />}
      </dialog>
    </>
  )
}
