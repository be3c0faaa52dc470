import { listChanges } from '../api/generated/client.ts'
import { useLoad } from '../state/load.ts'
import { given } from '../state/parameters.ts'
import { place } from '../state/router.ts'
import { Pages } from '../ui/filters.tsx'
import { Notice, Shown } from '../ui/states.tsx'
import { Time } from '../ui/text.tsx'

const PAGE_SIZE = 50

/** Who has changed what, newest first. */
export function Changes() {
  const { query } = place.value
  const loaded = useLoad(`changes ${query}`, signal =>
    listChanges({ limit: PAGE_SIZE, ...given(query, 'cursor') }, { signal }),
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
