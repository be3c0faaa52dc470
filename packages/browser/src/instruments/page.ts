import { INTERNAL, type ParentSpan, type Tracer } from '../signals/tracer.ts'

/** Makes spans of the page load and of navigations within the page. Returns what undoes it. */
export function watchPage(tracer: Tracer): () => void {
  tracer.startRoot({ name: `page load ${location.pathname}`, kind: INTERNAL, startMs: 0 }, parentInPage())
  let path = location.pathname
  const onLoad = () => setTimeout(() => addLoadTimes(tracer), 0)
  if (document.readyState === 'complete') onLoad()
  else addEventListener('load', onLoad, { once: true })

  const onNavigation = () => {
    if (location.pathname === path) return
    path = location.pathname
    tracer.startRoot({ name: `navigation ${path}`, kind: INTERNAL })
  }
  const { pushState, replaceState } = history
  const after = (method: History['pushState']) =>
    function watched(this: History, ...given: Parameters<History['pushState']>): void {
      Reflect.apply(method, this, given)
      onNavigation()
    }
  const [watchedPush, watchedReplace] = [after(pushState), after(replaceState)]
  history.pushState = watchedPush
  history.replaceState = watchedReplace
  addEventListener('popstate', onNavigation)
  return () => {
    removeEventListener('load', onLoad)
    removeEventListener('popstate', onNavigation)
    if (history.pushState === watchedPush) history.pushState = pushState
    if (history.replaceState === watchedReplace) history.replaceState = replaceState
    tracer.endRoot()
  }
}

/** Returns the span of the server that has made the page, which it states as `<meta name="traceparent">`. */
function parentInPage(): ParentSpan | undefined {
  const content = document.querySelector('meta[name="traceparent"]')?.getAttribute('content') ?? ''
  const [, traceId, spanId] = /^00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}$/.exec(content) ?? []
  return traceId === undefined || spanId === undefined ? undefined : { traceId, spanId, isRemote: true }
}

/** Adds what the browser has measured of the page load. */
function addLoadTimes(tracer: Tracer): void {
  const [timing] = performance.getEntriesByType('navigation') as PerformanceNavigationTiming[]
  if (timing === undefined || timing.responseEnd === 0) return
  const { fetchStart, responseStart, responseEnd, domInteractive, loadEventEnd, type, transferSize } = timing
  tracer.add({ name: 'document fetch', kind: INTERNAL, startMs: fetchStart }, responseEnd)
  tracer.extendRoot(
    {
      'browser.navigation.type': type,
      'browser.navigation.response_start_ms': Math.round(responseStart),
      'browser.navigation.dom_interactive_ms': Math.round(domInteractive),
      'browser.navigation.load_event_end_ms': Math.round(loadEventEnd),
      'browser.navigation.transfer_size': transferSize,
    },
    loadEventEnd,
  )
}
