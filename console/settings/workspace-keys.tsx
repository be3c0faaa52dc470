import { useState } from 'preact/hooks'
import {
  createWorkspaceKey,
  listWorkspaceKeys,
  type NewWorkspaceKey,
  revokeWorkspaceKey,
  type WorkspaceKey,
} from '../api/generated/client.ts'
import { workspaceOfPage } from '../auth/sign-in.ts'
import { useLoad } from '../state/load.ts'
import { given, place } from '../state/router.ts'
import { ChangeForm, Confirmed, Field, NewSecret } from '../ui/changes.tsx'
import { Pages } from '../ui/filters.tsx'
import { Notice, Shown } from '../ui/states.tsx'
import { Time } from '../ui/text.tsx'
import { KeyState, KeyUse, Lifetime, secondsOf } from './lifetime.tsx'
import { PermissionBoxes, Permissions, permissionsOf } from './permissions.tsx'

const PAGE_SIZE = 50

/** API keys of the workspace. A new one is shown once. */
export function WorkspaceKeys() {
  const workspaceSlug = workspaceOfPage()
  if (workspaceSlug !== undefined) return <Keys workspaceSlug={workspaceSlug} />
  return <Notice title="No workspace is named" text="The token of this sign-in has no claim that names a workspace." />
}

function Keys({ workspaceSlug }: { readonly workspaceSlug: string }) {
  const { query } = place.value
  const [created, setCreated] = useState<NewWorkspaceKey>()
  const loaded = useLoad(`api-keys ${query}`, signal =>
    listWorkspaceKeys({ workspaceSlug, limit: PAGE_SIZE, ...given(query, 'cursor') }, { signal }),
  )
  return (
    <section>
      <h2>API keys</h2>
      <p class="quiet">
        For programs that manage the workspace. A key never has a permission that its creator has not.
      </p>
      {created && (
        <NewSecret secret={created.secret} what={`New API key ${created.name}`} onDone={() => setCreated(undefined)} />
      )}
      <details>
        <summary>Create an API key</summary>
        <ChangeForm
          submit="Create API key"
          change={async (fields, signal) => {
            const scopes = permissionsOf(fields)
            if (scopes.length === 0) throw new Error('a key without a permission can do nothing: choose at least one')
            const createWorkspaceKeyRequest = {
              idempotencyKey: crypto.randomUUID(),
              name: String(fields.get('name')).trim(),
              scopes,
              secondsUntilExpiration: secondsOf(fields),
            }
            const answer = await createWorkspaceKey({ workspaceSlug, createWorkspaceKeyRequest }, { signal })
            setCreated(answer.apiKey)
          }}
          onDone={loaded.again}
        >
          <Field name="name" label="Name" isRequired />
          <Lifetime />
          <PermissionBoxes />
        </ChangeForm>
      </details>
      <Shown loaded={loaded} what="API keys">
        {({ apiKeys, nextCursor }) => (
          <>
            {apiKeys.length === 0 && <Notice title="No API keys yet" text="Programs sign in with one." />}
            <ul class="cards">
              {apiKeys.map(key => (
                <KeyCard key={key.id} workspaceSlug={workspaceSlug} shown={key} changed={loaded.again} />
              ))}
            </ul>
            <Pages nextCursor={nextCursor} />
          </>
        )}
      </Shown>
    </section>
  )
}

function KeyCard(props: {
  readonly workspaceSlug: string
  readonly shown: WorkspaceKey
  readonly changed: () => void
}) {
  const { workspaceSlug, shown, changed } = props
  return (
    <li>
      <div class="card-head">
        <h3>{shown.name}</h3>
        <code>{shown.prefix}…</code> <KeyState of={shown} />
        <span class="quiet">
          created <Time iso={shown.createdAt} /> by {shown.createdBy?.userId}
        </span>
        <KeyUse of={shown.usage} />
        {shown.revokedAt === null && (
          <span class="card-actions">
            <Confirmed
              label="Revoke"
              what={`API key ${shown.name}`}
              title={`Revoke the API key ${shown.name}?`}
              word={shown.name}
              change={signal => revokeWorkspaceKey({ workspaceSlug, apiKeyId: shown.id }, { signal })}
              onDone={changed}
            >
              <p>Programs with this key are refused. Secret keys that it has made stop working too.</p>
            </Confirmed>
          </span>
        )}
      </div>
      <Permissions of={shown.scopes} />
    </li>
  )
}
