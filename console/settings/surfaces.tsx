import { useState } from 'preact/hooks'
import {
  createSurfaceKey,
  deleteSurface,
  listSurfaceKeys,
  listSurfaces,
  type NewSurfaceKey,
  revokeSurfaceKey,
  type Surface,
  type SurfaceKey,
  updateSurfaceKey,
} from '../api/generated/client.ts'
import { createSurfaceWithKey, endpointOfPage } from '../onboarding/access.ts'
import { formatCount } from '../state/format.ts'
import { useLoad } from '../state/load.ts'
import { changeQuery, given, place } from '../state/router.ts'
import { ChangeForm, Confirmed, Field, NewSecret } from '../ui/changes.tsx'
import { Pages } from '../ui/filters.tsx'
import { Notice, Shown } from '../ui/states.tsx'
import { Copy, Time } from '../ui/text.tsx'
import { KeyState, KeyUse, Lifetime, secondsOf } from './lifetime.tsx'

const PAGE_SIZE = 50

/** Surfaces, and the keys of the one that `?surface=` names. */
export function Surfaces() {
  const { query } = place.value
  const loaded = useLoad(`surfaces ${query.get('cursor')}`, signal =>
    listSurfaces({ limit: PAGE_SIZE, ...given(query, 'cursor') }, { signal }),
  )
  const selected = query.get('surface')
  return (
    <section>
      <h2>Surfaces</h2>
      <p class="quiet">A surface is what sends telemetry: a web site, an app, a server. It sends to this endpoint.</p>
      <p>
        <code>{endpointOfPage()}</code> <Copy text={endpointOfPage()} what="endpoint" />
      </p>
      <ChangeForm
        submit="Create surface"
        change={async (fields, signal) => {
          const { id } = await createSurfaceWithKey(String(fields.get('name')).trim(), { signal })
          changeQuery({ surface: id }, { replace: true })
        }}
        onDone={loaded.again}
      >
        <Field name="name" label="Name of a new surface" isRequired />
      </ChangeForm>
      <Shown loaded={loaded} what="surfaces">
        {({ surfaces, nextCursor }) => (
          <>
            {surfaces.length === 0 && <Notice title="No surfaces yet" text="Create one: it gets a public key." />}
            <ul class="cards">
              {surfaces.map(surface => (
                <SurfaceCard
                  key={surface.id}
                  surface={surface}
                  isOpen={surface.id === selected}
                  onDeleted={loaded.again}
                />
              ))}
            </ul>
            <Pages nextCursor={nextCursor} />
          </>
        )}
      </Shown>
    </section>
  )
}

function SurfaceCard(props: { readonly surface: Surface; readonly isOpen: boolean; readonly onDeleted: () => void }) {
  const { surface, isOpen, onDeleted } = props
  return (
    <li>
      <div class="card-head">
        <h3>{surface.name}</h3>
        <span class="quiet">
          <code>{surface.id}</code>, created <Time iso={surface.createdAt} />
        </span>
        <span class="card-actions">
          <button
            type="button"
            data-row
            aria-expanded={isOpen}
            onClick={() => changeQuery({ surface: isOpen ? undefined : surface.id }, { replace: true })}
          >
            {isOpen ? 'Hide keys' : 'Show keys'}
            <span class="hidden"> of {surface.name}</span>
          </button>
          <Confirmed
            label="Delete"
            what={surface.name}
            title={`Delete ${surface.name}?`}
            word={surface.name}
            change={signal => deleteSurface({ surfaceId: surface.id }, { signal })}
            onDone={onDeleted}
          >
            <p>Its keys stop working within a second. Data that it has sent is kept for the usual retention.</p>
          </Confirmed>
        </span>
      </div>
      {isOpen && <SurfaceKeys surfaceId={surface.id} />}
    </li>
  )
}

const KEYS_SHOWN = 100
const QUOTAS = [
  ['requestsPerSecond', 'Requests a second'],
  ['bytesPerSecond', 'Bytes a second'],
  ['bytesPerDay', 'Bytes a day'],
] as const

/** The keys of a surface. A new secret key is shown once. */
function SurfaceKeys({ surfaceId }: { readonly surfaceId: string }) {
  const loaded = useLoad(`keys ${surfaceId}`, signal => listSurfaceKeys({ surfaceId, limit: KEYS_SHOWN }, { signal }))
  const [created, setCreated] = useState<NewSurfaceKey>()
  return (
    <div class="card-body">
      <ChangeForm
        submit="Create key"
        change={async (fields, signal) => {
          const name = String(fields.get('name')).trim()
          const common = { secondsUntilExpiration: secondsOf(fields), ...(name && { name }) }
          const createSurfaceKeyRequest =
            fields.get('kind') === 'secret'
              ? { kind: 'secret' as const, scopes: ['release:write' as const], ...common }
              : { kind: 'public' as const, ...common }
          const answer = await createSurfaceKey(
            {
              surfaceId,
              // The types that are generated have a list of one scope without its brackets.
              createSurfaceKeyRequest: createSurfaceKeyRequest as Parameters<
                typeof createSurfaceKey
              >[0]['createSurfaceKeyRequest'],
            },
            { signal },
          )
          // A public key is in the list.
          if (answer.key.kind === 'secret') setCreated(answer.key)
        }}
        onDone={loaded.again}
      >
        <label class="field">
          <span>Kind of a new key</span>
          <select name="kind">
            <option value="public">Public, for telemetry</option>
            <option value="secret">Secret, for releases</option>
          </select>
        </label>
        <Field name="name" label="Name, if you like" />
        <Lifetime />
      </ChangeForm>
      {created && <NewSecret secret={created.secret} what="New secret key" onDone={() => setCreated(undefined)} />}
      <Shown loaded={loaded} what="keys">
        {({ keys, nextCursor }) => (
          <>
            {keys.length === 0 && <p class="quiet">No keys yet: nothing can be sent.</p>}
            <ul class="entries">
              {keys.map(key => (
                <Key key={key.id} surfaceId={surfaceId} shown={key} changed={loaded.again} />
              ))}
            </ul>
            {nextCursor !== null && <p class="quiet">These are the newest {KEYS_SHOWN} keys. There are more.</p>}
          </>
        )}
      </Shown>
    </div>
  )
}

function Key(props: { readonly surfaceId: string; readonly shown: SurfaceKey; readonly changed: () => void }) {
  const { surfaceId, shown, changed } = props
  const { id: keyId, kind, name, prefix, quotas, allowedOrigins } = shown
  const limits = QUOTAS.filter(([name]) => quotas?.[name] !== undefined)
  return (
    <li>
      <div class="card-head">
        <strong>{name}</strong> <span class="tag">{kind}</span> <KeyState of={shown} />
        <span class="quiet">
          created <Time iso={shown.createdAt} /> by {shown.createdBy?.userId ?? 'an operator'}
        </span>
        {shown.revokedAt === null && (
          <span class="card-actions">
            <Confirmed
              label="Revoke"
              what={`key ${prefix}`}
              title={`Revoke the ${kind} key ${prefix}…?`}
              word="revoke"
              change={signal => revokeSurfaceKey({ surfaceId, keyId }, { signal })}
              onDone={changed}
            >
              <p>It stops working within a second. Its programs and pages need another key.</p>
            </Confirmed>
          </span>
        )}
      </div>
      <KeyText shown={shown} />
      <div class="quiet">
        {limits.length === 0
          ? 'No quotas'
          : limits.map(([name, label]) => `${label}: ${formatCount(quotas?.[name] ?? 0)}`).join(', ')}
        {kind === 'public' && `. Origins: ${allowedOrigins?.join(', ') ?? 'all'}`}
      </div>
      {shown.revokedAt === null && (
        <details>
          <summary>Change quotas{kind === 'public' && ' and origins'}</summary>
          <ChangeForm
            submit="Change key"
            change={(fields, signal) =>
              updateSurfaceKey({ surfaceId, keyId, updateSurfaceKeyRequest: changeOf(fields, kind) }, { signal })
            }
            onDone={changed}
          >
            {QUOTAS.map(([name, label]) => (
              <Field key={name} name={name} label={label} type="number" value={String(quotas?.[name] ?? '')} />
            ))}
            {kind === 'public' && (
              <Field
                name="origins"
                label="Allowed origins"
                value={allowedOrigins?.join(' ') ?? ''}
                hint="Divided by spaces. Empty allows all."
              />
            )}
          </ChangeForm>
        </details>
      )}
    </li>
  )
}

/** The text of a public key or the beginning of a secret one, and its use. */
function KeyText({ shown: { publicKey, prefix, usage } }: { readonly shown: SurfaceKey }) {
  return (
    <div>
      <code>{publicKey ?? `${prefix}…`}</code> {publicKey && <Copy text={publicKey} what="key" />} <KeyUse of={usage} />
    </div>
  )
}

/** Returns a change of all quotas and origins: an empty field removes its limit. */
function changeOf(fields: FormData, kind: SurfaceKey['kind']) {
  const quotas = Object.fromEntries(
    QUOTAS.map(([name]) => [name, fields.get(name) ? Number(fields.get(name)) : null] as const),
  )
  const origins = String(fields.get('origins') ?? '')
    .split(/[\s,]+/)
    .filter(Boolean)
  return { quotas, ...(kind === 'public' && { allowedOrigins: origins.length > 0 ? origins : null }) }
}
