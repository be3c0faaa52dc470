import { useState } from 'preact/hooks'
import { type AlertRule, type AlertTrial, tryAlertRule } from '../../api/generated/client.ts'
import { counted } from '../../state/format.ts'
import { addressOf } from '../../state/router.ts'
import { ChangeFault, useAction } from '../../ui/changes.tsx'
import { Time } from '../../ui/text.tsx'
import { nameOfKind } from '../kinds.ts'
import { faultIn, type RuleForm } from './rule-form.ts'

/** Tries a rule on the last seven days. `form` is the one that is shown now. */
export function useTrial(form: RuleForm) {
  const action = useAction()
  const [tried, setTried] = useState<{ readonly form: RuleForm; readonly trial?: AlertTrial }>()
  const run = async (rule: AlertRule) => {
    setTried({ form })
    await action.run(async signal => {
      const trial = await tryAlertRule({ tryAlertRuleRequest: { rule } }, { signal })
      setTried({ form, trial })
    })
  }
  const isCurrent = tried?.form === form
  const faults = isCurrent ? faultIn(action.fault?.message ?? '', undefined) : undefined
  const shown = (
    <>
      {action.isBusy && <p role="status">Trying it on the last seven days…</p>}
      {!faults && isCurrent && <ChangeFault fault={action.fault} />}
      {tried?.trial && <Trial of={tried.trial} isCurrent={isCurrent} />}
    </>
  )
  return { run, isBusy: action.isBusy, faults, shown }
}

function Trial({ of: trial, isCurrent }: { readonly of: AlertTrial; readonly isCurrent: boolean }) {
  const { events, messages, calls, unknown } = trial
  return (
    <section class="trial" aria-label="The last seven days">
      <p role="status">
        <strong>
          It would {events === 0 ? 'not have called' : `have called ${timesOf(events)}`} in the last seven days.
        </strong>{' '}
        {messages < events && `Slack, Teams and e-mail would have got ${counted(messages, 'message')}.`}{' '}
        {!isCurrent && <span class="fault">The rule was changed since then.</span>}
      </p>
      {unknown.map(({ kind, reason }) => (
        <p key={kind} class="quiet">
          {nameOfKind(kind)}: {reason}
        </p>
      ))}
      <ul class="entries" aria-label="Calls">
        {calls.map(call => (
          <Call key={`${call.at} ${call.kind} ${call.title} ${call.resolved}`} of={call} />
        ))}
      </ul>
      {calls.length < events && <p class="quiet">These are the latest {calls.length}.</p>}
    </section>
  )
}

function timesOf(events: number): string {
  return events === 1 ? 'once' : counted(events, 'time')
}

function Call({ of: call }: { readonly of: AlertTrial['calls'][number] }) {
  const { at, kind, title, findingId, resolved, value, unit } = call
  return (
    <li>
      <div class="entry-head">
        <span class="quiet">
          <Time iso={at} exact />
        </span>
        <span class={`tag ${resolved ? 'good' : ''}`}>{resolved ? 'over' : nameOfKind(kind)}</span>
        {findingId ? <a href={addressOf(`findings/${findingId}`)}>{title}</a> : <span>{title}</span>}
        {value !== undefined && (
          <span class="number">
            {Number(value.toPrecision(4)).toLocaleString()} {unit}
          </span>
        )}
      </div>
    </li>
  )
}
