import { conditionsOf, LIST_CONDITIONS, type ListCondition } from '../kinds.ts'
import { Box, type Editing, FieldFault, TextInput, toggled, ValuesInput } from './inputs.tsx'
import { useSuggestions, useSurfaces } from './suggestions.ts'

const LABELS: Readonly<Record<Exclude<ListCondition, 'surfaces'>, string>> = {
  services: 'Services',
  environments: 'Environments',
  releases: 'Releases',
  types: 'Types',
}
const HINTS = {
  releases: 'That of the latest occurrence.',
  types: 'Types of exceptions, or titles of failed spans.',
} as Readonly<Record<string, string>>

/** The conditions that the kinds of a rule can meet. */
export function ConditionFields({ editing }: { readonly editing: Editing }) {
  const suggestions = useSuggestions()
  const { form } = editing
  const conditions = conditionsOf(form.kinds)
  if (form.kinds.length === 0) return null
  const lists = LIST_CONDITIONS.filter(field => field !== 'surfaces').filter(field => conditions.includes(field))
  return (
    <fieldset class="boxes">
      <legend>Only for</legend>
      {conditions.length === 0 && (
        <p class="quiet">
          {form.kinds.length === 1
            ? 'Events of this kind have no conditions.'
            : 'These kinds have no condition in common.'}{' '}
          The rule calls for all of them.
        </p>
      )}
      {conditions.includes('surfaces') && <SurfaceFields editing={editing} />}
      <div class="row">
        {lists.map(field => (
          <ValuesInput
            key={field}
            editing={editing}
            field={field}
            label={LABELS[field]}
            suggestions={suggestions[field]}
            hint={HINTS[field] ?? ''}
          />
        ))}
        {conditions.includes('minPeople') && (
          <TextInput
            editing={editing}
            field="minPeople"
            label="People, at least"
            kind="number"
            placeholder="Any"
            hint="Whom the finding concerned."
          />
        )}
      </div>
    </fieldset>
  )
}

function SurfaceFields({ editing: { form, faults, change } }: { readonly editing: Editing }) {
  const surfaces = useSurfaces()
  const chosen = form.lists.surfaces
  // A rule may name a surface that is deleted.
  const others = chosen.filter(id => surfaces.every(surface => surface.id !== id)).map(id => ({ id, name: id }))
  return (
    <fieldset class={faults.surfaces ? 'plain invalid' : 'plain'} aria-label="Surfaces">
      <p class="quiet">Surfaces. Without a choice, all of them.</p>
      <FieldFault text={faults.surfaces} />
      <div class="many">
        {[...surfaces, ...others].map(({ id, name }) => (
          <Box
            key={id}
            isChecked={chosen.includes(id)}
            onChange={isIn => change({ lists: { ...form.lists, surfaces: toggled(chosen, id, isIn) } })}
          >
            {name}
          </Box>
        ))}
      </div>
    </fieldset>
  )
}
