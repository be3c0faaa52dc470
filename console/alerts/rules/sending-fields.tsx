import type { AlertReceiver } from '../../api/generated/client.ts'
import { Box, type Editing, FieldFault, TextInput, toggled } from './inputs.tsx'

/** The receivers of a rule. */
export function ReceiverFields(props: { readonly editing: Editing; readonly receivers: readonly AlertReceiver[] }) {
  const { form, faults, change } = props.editing
  const chosen = form.receivers
  return (
    <fieldset class={`boxes ${faults.receivers ? 'invalid' : ''}`}>
      <legend>It calls</legend>
      <Box type="radio" name="whom" isChecked={chosen === undefined} onChange={() => change({ receivers: undefined })}>
        every receiver
      </Box>
      <Box type="radio" name="whom" isChecked={chosen !== undefined} onChange={() => change({ receivers: [] })}>
        only these
      </Box>
      <FieldFault text={faults.receivers} />
      {chosen && (
        <fieldset class="plain many" aria-label="Receivers">
          {props.receivers.length === 0 && <p class="quiet">There are no receivers yet.</p>}
          {props.receivers.map(({ name }) => (
            <Box
              key={name}
              isChecked={chosen.includes(name)}
              onChange={isIn => change({ receivers: toggled(chosen, name, isIn) })}
            >
              {name}
            </Box>
          ))}
        </fieldset>
      )}
    </fieldset>
  )
}

/** When a rule sends. */
export function TimeFields({ editing }: { readonly editing: Editing }) {
  const { form, change } = editing
  return (
    <fieldset class="boxes">
      <legend>When it sends</legend>
      <TextInput
        editing={editing}
        field="everyMinutes"
        label="Minutes between messages"
        kind="number"
        placeholder="None"
        hint="What happens meanwhile waits for the next message."
      />
      <Box isChecked={form.isQuiet} onChange={isQuiet => change({ isQuiet })}>
        Quiet hours <span class="quiet">Nothing is sent in them. It waits for their end.</span>
      </Box>
      {form.isQuiet && (
        <fieldset class="measure" aria-label="Quiet hours">
          <TextInput editing={editing} field="quietHours.from" label="From" kind="time" />
          <TextInput editing={editing} field="quietHours.to" label="To" kind="time" />
          <TextInput editing={editing} field="quietHours.zone" label="Time zone" />
        </fieldset>
      )}
      <Box isChecked={form.resolved !== false} onChange={resolved => change({ resolved })}>
        Also when it is over{' '}
        <span class="quiet">Receivers learn that a condition has ended, or a finding is resolved.</span>
      </Box>
    </fieldset>
  )
}
