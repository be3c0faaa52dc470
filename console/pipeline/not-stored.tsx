import type { Pipeline } from '../api/generated/client.ts'
import { counted, formatCount } from '../state/format.ts'
import { addressOf } from '../state/router.ts'

type PipelineHistory = NonNullable<Pipeline['history']>

/** Requests that were refused or not stored in the last 24 hours, by reason. Nothing is shown if there are none. */
export function NotStored({ history }: { readonly history: PipelineHistory }) {
  const { letters, refused, purgedLetters } = history
  if (letters.length === 0 && refused.length === 0 && purgedLetters === 0) return null
  return (
    <section>
      <h2>Not stored in the last 24 hours</h2>
      <div class="columns">
        {letters.length > 0 && <Letters letters={letters} />}
        {refused.length > 0 && <Refused refused={refused} />}
      </div>
      {purgedLetters > 0 && <p class="quiet">{counted(purgedLetters, 'dead letter')} purged</p>}
    </section>
  )
}

function Letters({ letters }: Pick<PipelineHistory, 'letters'>) {
  return (
    <table class="attributes">
      <caption>Accepted, and dead letters since</caption>
      <tbody>
        {letters.map(({ reason, dead, replayed, discarded }) => (
          <tr key={reason}>
            <th scope="row">
              <a href={addressOf('pipeline', { reason })}>{reason}</a>
            </th>
            <td>
              {[
                dead > 0 && `${formatCount(dead)} not stored`,
                replayed > 0 && `${formatCount(replayed)} replayed`,
                discarded > 0 && `${formatCount(discarded)} discarded`,
              ]
                .filter(Boolean)
                .join(', ')}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function Refused({ refused }: Pick<PipelineHistory, 'refused'>) {
  return (
    <table class="attributes">
      <caption>Refused in the response</caption>
      <tbody>
        {refused.map(({ kind, status, requests }) => (
          <tr key={`${kind} ${status}`}>
            <th scope="row">
              {kind}, status {status}
            </th>
            <td>{counted(requests, 'request')}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}
