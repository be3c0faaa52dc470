import { createSurface, deleteSurface, listSurfaces, type Surface } from '../api/generated/client.ts'
import { useLoad } from '../state/load.ts'
import { given } from '../state/parameters.ts'
import { changeQuery, place } from '../state/router.ts'
import { ChangeForm, Confirmed, Field } from '../ui/changes.tsx'
import { Pages } from '../ui/filters.tsx'
import { Notice, Shown } from '../ui/states.tsx'
import { Time } from '../ui/text.tsx'
import { SurfaceKeys } from './surface-keys.tsx'

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
      <p class="quiet">A surface is what sends telemetry: a web site, an app, a server.</p>
      <ChangeForm
        submit="Create surface"
        change={(fields, signal) =>
          createSurface({ createSurfaceRequest: { name: String(fields.get('name')).trim() } }, { signal })
        }
        onDone={loaded.again}
      >
        <Field name="name" label="Name of a new surface" isRequired />
      </ChangeForm>
      <Shown loaded={loaded} what="surfaces">
        {({ surfaces, nextCursor }) => (
          <>
            {surfaces.length === 0 && <Notice title="No surfaces yet" text="Create one, and then a key of it." />}
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
