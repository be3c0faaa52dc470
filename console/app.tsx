import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { signIn, signInState } from './auth/sign-in.ts'
import { place } from './state/router.ts'
import { Frame } from './ui/frame.tsx'
import { Guarded, Loading, Notice } from './ui/states.tsx'
import { Title } from './ui/text.tsx'

/** A page, which reads its parameters from the address. `id` is the part of the path after its name. */
type Page = ComponentType<{ readonly id: string }>

interface PageRoute {
  readonly pattern: RegExp
  readonly load: () => Promise<Page>
}

/** Pages by path. Each is a file of its own, which is loaded when it is first shown. */
const ROUTES: readonly PageRoute[] = [
  { pattern: /^(?:findings)?$/, load: async () => (await import('./findings/findings-page.tsx')).FindingsPage },
  { pattern: /^findings\/([^/]+)$/, load: async () => (await import('./findings/finding-page.tsx')).FindingPage },
  { pattern: /^services$/, load: async () => (await import('./services/services-page.tsx')).ServicesPage },
  { pattern: /^services-map$/, load: async () => (await import('./services/map-page.tsx')).ServiceMapPage },
  { pattern: /^services\/([^/]+)$/, load: async () => (await import('./services/service-page.tsx')).ServicePage },
  { pattern: /^traces$/, load: async () => (await import('./traces/traces-page.tsx')).TracesPage },
  { pattern: /^logs$/, load: async () => (await import('./logs/logs-page.tsx')).LogsPage },
  { pattern: /^releases$/, load: async () => (await import('./releases/releases-page.tsx')).ReleasesPage },
  { pattern: /^releases\/([^/]+)$/, load: async () => (await import('./releases/release-page.tsx')).ReleasePage },
  { pattern: /^pipeline\/([^/]+)$/, load: async () => (await import('./pipeline/letter-page.tsx')).LetterPage },
  { pattern: /^metrics$/, load: async () => (await import('./metrics/metrics-page.tsx')).MetricsPage },
  { pattern: /^metrics\/([^/]+)$/, load: async () => (await import('./metrics/metric-page.tsx')).MetricPage },
  { pattern: /^pipeline$/, load: async () => (await import('./pipeline/pipeline-page.tsx')).PipelinePage },
  {
    pattern: /^settings(?:\/([^/]+))?$/,
    load: async () => (await import('./settings/settings-page.tsx')).SettingsPage,
  },
  { pattern: /^sessions$/, load: async () => (await import('./sessions/sessions-page.tsx')).SessionsPage },
  { pattern: /^sessions\/([^/]+)$/, load: async () => (await import('./sessions/session-page.tsx')).SessionPage },
  { pattern: /^traces\/([^/]+)$/, load: async () => (await import('./traces/trace-page.tsx')).TracePage },
]

/** The console: its frame, and the page of the address once the user is signed in. */
export function App() {
  const state = signInState.value
  if (state.is === 'pending') return <Loading text="Signing in" />
  if (state.is === 'failed') {
    return (
      <main class="alone">
        <Title text="Penstock" />
        <Notice title="You are not signed in" text={state.fault}>
          <button type="button" onClick={() => void signIn()}>
            Sign in
          </button>
        </Notice>
      </main>
    )
  }
  return (
    <Frame>
      <CurrentPage />
    </Frame>
  )
}

function CurrentPage() {
  const { path } = place.value
  const found = ROUTES.map(route => ({ route, match: route.pattern.exec(path) })).find(({ match }) => match !== null)
  const [shown, show] = useState<{ readonly route: PageRoute; readonly Page: Page }>()
  const [isMissing, setMissing] = useState(false)
  const route = found?.route
  useEffect(() => {
    let isLeft = false
    setMissing(false)
    route?.load().then(
      Page => isLeft || show({ route, Page }),
      () => isLeft || setMissing(true),
    )
    return () => {
      isLeft = true
    }
  }, [route])
  if (route === undefined) {
    return (
      <>
        <Title text="Not found" />
        <Notice title="There is no such page" text="Look for it in the navigation above." />
      </>
    )
  }
  if (isMissing) {
    return (
      <Notice title="This page could not be loaded" text="The console was updated, or the connection is lost.">
        <button type="button" onClick={() => location.reload()}>
          Load again
        </button>
      </Notice>
    )
  }
  if (shown?.route !== route) return <Loading text="Loading" />
  const id = decode(found?.match?.[1] ?? '')
  return (
    <Guarded key={path} what="This page" heading={<Title text="Error" />}>
      <shown.Page id={id} />
    </Guarded>
  )
}

/** Returns a part of the path, decoded if its encoding is valid. */
function decode(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
