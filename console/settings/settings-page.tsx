import type { ComponentType } from 'preact'
import { AlertsOfWorkspace } from '../alerts/alerts.tsx'
import { listChanges } from '../api/generated/client.ts'
import { useLoad } from '../state/load.ts'
import { addressOf, given, place } from '../state/router.ts'
import { Pages } from '../ui/filters.tsx'
import { Notice, Shown } from '../ui/states.tsx'
import { Time, Title } from '../ui/text.tsx'
import { Members } from './members.tsx'
import { RetentionOfKinds } from './retention.tsx'
import { Surfaces } from './surfaces.tsx'
import { UsagePerDay } from './usage.tsx'
import { WorkspaceKeys } from './workspace-keys.tsx'

/** Parts of the settings by the part of the address. The first one is shown without it. */
const PARTS: readonly { readonly path: string; readonly name: string; readonly Part: ComponentType }[] = [
  { path: 'surfaces', name: 'Surfaces', Part: Surfaces },
  { path: 'keys', name: 'API keys', Part: WorkspaceKeys },
  { path: 'members', name: 'Members', Part: Members },
  { path: 'alerts', name: 'Alerts', Part: AlertsOfWorkspace },
  { path: 'retention', name: 'Retention', Part: RetentionOfKinds },
  { path: 'usage', name: 'Usage', Part: UsagePerDay },
  { path: 'changes', name: 'Changes', Part: Changes },
]

/** The settings of the workspace: what sends to it, who may do what, and who has changed it. */
export function SettingsPage({ id }: { readonly id: string }) {
  const part = PARTS.find(({ path }) => path === (id || 'surfaces'))
  return (
    <>
      <Title text="Settings" />
      <nav class="parts" aria-label="Parts of the settings">
        {PARTS.map(({ path, name }) => (
          <a key={path} href={addressOf(`settings/${path}`)} aria-current={path === part?.path ? 'page' : undefined}>
            {name}
          </a>
        ))}
      </nav>
      {part ? <part.Part /> : <Notice title="There are no such settings" text="Choose one of the parts above." />}
    </>
  )
}

const CHANGES_SHOWN = 50

/** Who has changed what, newest first. */
function Changes() {
  const { query } = place.value
  const loaded = useLoad(`changes ${query}`, signal =>
    listChanges({ limit: CHANGES_SHOWN, ...given(query, 'cursor') }, { signal }),
  )
  return (
    <section>
      <h2>Changes</h2>
      <Shown loaded={loaded} what="changes">
        {({ changes, nextCursor }) => (
          <>
            {changes.length === 0 && <Notice title="No changes yet" text="No one has changed this workspace." />}
            <ul class="entries">
              {changes.map(({ id, createdAt, by, action, subject, name, permissions }) => (
                <li key={id}>
                  <div class="entry-head">
                    <span class="tag">{action}</span>
                    <strong>{name ?? subject}</strong>
                    {name && <code>{subject}</code>}
                    <span class="quiet">
                      by {by?.userId ?? 'an operator'}
                      {by?.apiKeyId && ` with ${by.apiKeyId}`}, <Time iso={createdAt} />
                    </span>
                  </div>
                  {permissions && <div class="quiet">{permissions.join(', ') || 'no permissions'}</div>}
                </li>
              ))}
            </ul>
            <Pages nextCursor={nextCursor} />
          </>
        )}
      </Shown>
    </section>
  )
}
