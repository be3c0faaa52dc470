import type { RefObject } from 'preact'
import { useState } from 'preact/hooks'

/** Pixels that a drag has at least: less is a click. */
const LEAST_PX = 5

/** The part of the width that is being dragged over, as shares from 0 to 1. */
interface Dragged {
  readonly from: number
  readonly to: number
}

/** Lets the user drag over an element, and returns what is being dragged over with the handlers of the element. */
export function useDragRange(element: RefObject<Element | null>, chosen: (dragged: Dragged) => void) {
  const [drag, setDrag] = useState<{ readonly start: number; readonly end: number }>()
  const shareAt = (event: PointerEvent) => {
    const { left, width } = element.current?.getBoundingClientRect() ?? { left: 0, width: 1 }
    return Math.min(1, Math.max(0, (event.clientX - left) / width))
  }
  const dragged = drag && { from: Math.min(drag.start, drag.end), to: Math.max(drag.start, drag.end) }
  return {
    dragged,
    onPointerDown(event: PointerEvent) {
      if (event.button !== 0 || event.pointerType === 'touch') return
      element.current?.setPointerCapture(event.pointerId)
      setDrag({ start: shareAt(event), end: shareAt(event) })
    },
    onPointerMove(event: PointerEvent) {
      if (drag) setDrag({ ...drag, end: shareAt(event) })
    },
    onPointerUp() {
      setDrag(undefined)
      const width = element.current?.getBoundingClientRect().width ?? 0
      if (dragged && (dragged.to - dragged.from) * width >= LEAST_PX) chosen(dragged)
    },
    onPointerCancel: () => setDrag(undefined),
  }
}
