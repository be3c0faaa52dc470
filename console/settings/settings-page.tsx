import type { ComponentType } from 'preact'
import { addressOf } from '../state/router.ts'
import { Notice } from '../ui/states.tsx'
import { Title } from '../ui/text.tsx'
import { Changes } from './changes.tsx'
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
