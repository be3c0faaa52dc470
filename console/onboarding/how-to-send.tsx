import type { ComponentChildren } from 'preact'
import { useId, useState } from 'preact/hooks'
import { faultOf } from '../api/client.ts'
import { listMembers, listSurfaces, type Permission } from '../api/generated/client.ts'
import { useLoad } from '../state/load.ts'
import { ChangeForm, Field } from '../ui/changes.tsx'
import { Shown } from '../ui/states.tsx'
import { Copy, Fact, Facts } from '../ui/text.tsx'
import { createPublicKey, createSurfaceWithKey, endpointOfPage, publicKeyOf } from './access.ts'
import type { Access, Snippet } from './snippets.ts'

const SURFACES_MAX = 100
const FORBIDDEN = 403

/** The address and the key to send with, and examples that have both. Makes a surface and a key where there is none. */
export function HowToSend({ snippets }: { readonly snippets: readonly Snippet[] }) {
  const loaded = useLoad('surfaces', signal => listSurfaces({ limit: SURFACES_MAX }, { signal }))
  const [chosen, choose] = useState<string>()
  if (loaded.fault?.status === FORBIDDEN)
    return <WhomToAsk permission="org:surfaces:read" to="see the key to send with" />
  return (
    <Shown loaded={loaded} what="surfaces">
      {({ surfaces }) => {
        const surface = surfaces.find(({ id }) => id === chosen) ?? surfaces[0]
        if (surface === undefined) return <FirstSurface onDone={loaded.again} />
        return (
          <>
            {surfaces.length > 1 && (
              <label class="field">
                <span>Surface</span>
                <select value={surface.id} onChange={event => choose(event.currentTarget.value)}>
                  {surfaces.map(({ id, name }) => (
                    <option key={id} value={id}>
                      {name}
                    </option>
                  ))}
                </select>
              </label>
            )}
            <WithKey key={surface.id} surfaceId={surface.id} snippets={snippets} />
          </>
        )
      }}
    </Shown>
  )
}

function FirstSurface({ onDone }: { readonly onDone: () => void }) {
  return (
    <>
      <p>Telemetry belongs to a surface: a web site, an app, a server. This workspace has none.</p>
      <Making onDone={onDone} submit="Create a surface with a key" make={createSurfaceWithKey}>
        <Field name="name" label="Name of the surface" value="My application" isRequired />
      </Making>
    </>
  )
}

/** A form that makes what is missing. A user who may not do that reads whom to ask. */
function Making(props: {
  readonly submit: string
  readonly make: (name: string, options: { readonly signal: AbortSignal }) => Promise<unknown>
  readonly onDone: () => void
  readonly children?: ComponentChildren
}) {
  const { submit, make, onDone, children } = props
  const [isRefused, refuse] = useState(false)
  return (
    <>
      <ChangeForm
        submit={submit}
        change={(fields, signal) =>
          make(String(fields.get('name') ?? '').trim(), { signal }).catch((error: unknown) => {
            refuse(faultOf(error).status === FORBIDDEN)
            throw error
          })
        }
        onDone={onDone}
      >
        {children}
      </ChangeForm>
      {isRefused && <WhomToAsk permission="org:surfaces:write" to="create it" />}
    </>
  )
}

const MEMBERS_READ = 100

/** Names the members who have a permission, if the user may see members. */
function WhomToAsk({ permission, to }: { readonly permission: Permission; readonly to: string }) {
  const loaded = useLoad('members', signal => listMembers({ limit: MEMBERS_READ }, { signal }))
  const able = loaded.value?.members.filter(({ permissions }) => permissions.includes(permission)) ?? []
  const names = able.map(({ name, email, id }) => name ?? email ?? id)
  return (
    <p>
      You need the permission <code>{permission}</code> to {to}.{' '}
      {names.length > 0
        ? `These members have it: ${names.join(', ')}.`
        : 'Ask somebody who manages the members of this workspace.'}
    </p>
  )
}

function WithKey({ surfaceId, snippets }: { readonly surfaceId: string; readonly snippets: readonly Snippet[] }) {
  const loaded = useLoad(`key ${surfaceId}`, signal => publicKeyOf(surfaceId, { signal }))
  return (
    <Shown loaded={loaded} what="the key">
      {publicKey =>
        publicKey === null ? (
          <>
            <p>This surface has no public key, which clients send with.</p>
            <Making
              onDone={loaded.again}
              submit="Create a public key"
              make={(_, options) => createPublicKey(surfaceId, options)}
            />
          </>
        ) : (
          <Examples access={{ endpoint: endpointOfPage(), publicKey }} snippets={snippets} />
        )
      }
    </Shown>
  )
}

function Examples({ access, snippets }: { readonly access: Access; readonly snippets: readonly Snippet[] }) {
  const [chosen, choose] = useState(snippets[0])
  const name = useId()
  if (chosen === undefined) return null
  const text = chosen.text(access)
  return (
    <>
      <Facts>
        <Fact name="Endpoint">
          <code>{access.endpoint}</code> <Copy text={access.endpoint} what="endpoint" class="copy" />
        </Fact>
        <Fact name="Public key">
          <code>{access.publicKey}</code> <Copy text={access.publicKey} what="key" class="copy" />
        </Fact>
      </Facts>
      {snippets.length > 1 && (
        <fieldset class="choices">
          <legend class="hidden">Example for</legend>
          {snippets.map(snippet => (
            <label key={snippet.id}>
              <input type="radio" name={name} checked={snippet === chosen} onChange={() => choose(snippet)} />
              <span>{snippet.name}</span>
            </label>
          ))}
        </fieldset>
      )}
      <p class="quiet">{chosen.use}</p>
      <pre class="snippet">
        <code>{text}</code>
      </pre>
      <Copy key={chosen.id} text={text} what="example" class="copy" />
    </>
  )
}
