import { type Retention, readRetention } from '../api/generated/client.ts'
import { counted } from '../state/format.ts'
import { useLoad } from '../state/load.ts'
import { Shown } from '../ui/states.tsx'

const NAMES: Readonly<Record<keyof Retention['retention']['kinds'], string>> = {
  traces: 'Traces',
  logs: 'Log records',
  metrics: 'Metrics',
  findings: 'Findings',
  sessions: 'Sessions',
  replay: 'Replays',
  builds: 'Reports of builds',
  deadLetters: 'Dead letters',
  releases: 'Releases and source maps',
}

/** How long each kind of data is kept. */
export function RetentionOfKinds() {
  const loaded = useLoad('retention', signal => readRetention({ signal }))
  return (
    <section>
      <h2>Retention</h2>
      <Shown loaded={loaded} what="the retention">
        {({ retention }) => (
          <>
            <table class="list">
              <caption class="hidden">How long each kind of data is kept</caption>
              <thead>
                <tr>
                  <th scope="col">Data</th>
                  <th scope="col">Kept for</th>
                </tr>
              </thead>
              <tbody>
                {Object.entries(NAMES).map(([kind, name]) => {
                  const { days, isDefault } = retention.kinds[kind as keyof typeof NAMES]
                  return (
                    <tr key={kind}>
                      <th scope="row">{name}</th>
                      <td>
                        {days === null ? 'until deleted' : counted(days, 'day')}{' '}
                        {isDefault && <span class="quiet">(default)</span>}
                      </td>
                    </tr>
                  )
                })}
              </tbody>
            </table>
            <p class="quiet">
              At most {counted(retention.maxDays, 'day')}. A shorter time deletes what is older, for good:{' '}
              <code>PUT /v3/retention</code> changes it.
            </p>
          </>
        )}
      </Shown>
    </section>
  )
}
