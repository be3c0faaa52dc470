import { Fragment } from 'preact'
import type { FindingDetails } from '../api/generated/client.ts'

type Grouped = FindingDetails['grouping']

const REASONS: Readonly<Record<Grouped['by'], string>> = {
  client: 'The client sent the same fingerprint with each of them.',
  rule: 'A rule of the workspace gives them one fingerprint.',
  frames: 'These types and frames are the same in each of them, innermost first.',
  message: 'They have no stack. Type and message are the same, without ids, numbers and quoted texts.',
  title: 'They are failed spans with the same title.',
  lines: 'The format of their stack is unknown. These lines are the same in each of them, without numbers.',
}

/** Why the occurrences of a finding are one finding. */
export function Grouping({ finding: { grouping } }: { readonly finding: FindingDetails }) {
  const { by, rule, fingerprint, exceptions = [], type, lines = [], message } = grouping
  return (
    <details>
      <summary>Why these are one finding</summary>
      <p>{REASONS[by]}</p>
      {rule !== undefined && <Text name="Rule" text={rule} />}
      {fingerprint !== undefined && <Text name="Fingerprint" text={fingerprint} />}
      {type !== undefined && <Text name={by === 'title' ? 'Title' : 'Type'} text={type} />}
      {exceptions.map(({ type: own, frames }, i) => (
        <Fragment key={i}>
          <Text name={i === 0 ? 'Exception' : 'Then'} text={own || 'without a type'} />
          <pre class="source">{frames.join('\n') || 'without frames that count'}</pre>
        </Fragment>
      ))}
      {lines.length > 0 && <pre class="source">{lines.join('\n')}</pre>}
      {message !== undefined && <Text name="Message" text={message} />}
    </details>
  )
}

function Text({ name, text }: { readonly name: string; readonly text: string }) {
  return (
    <p>
      {name}: <span class="mono">{text}</span>
    </p>
  )
}
