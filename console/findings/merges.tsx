import { useState } from 'preact/hooks'
import { type Fault, faultOf } from '../api/client.ts'
import { type FindingDetails, mergeFindings, splitFinding } from '../api/generated/client.ts'
import { addressOf } from '../state/router.ts'

/** The findings that are merged into one, each to be split off, and the one that it was split from. */
export function Merges({ finding, changed }: { readonly finding: FindingDetails; readonly changed: () => void }) {
  const { run, isBusy, alert } = useChange()
  const { id, mergedFindingIds = [], splitFrom } = finding
  if (mergedFindingIds.length === 0 && splitFrom === undefined) return null
  const split = (findingId: string) =>
    void run(async () => {
      await splitFinding({ findingId: id, splitFindingRequest: { findingId } })
      changed()
    })
  return (
    <section>
      <h2>Merged findings</h2>
      {splitFrom && (
        <p>
          It was split from <a href={addressOf(`findings/${splitFrom}`)}>{splitFrom}</a>.
        </p>
      )}
      {alert}
      <ul class="entries">
        {mergedFindingIds.map(merged => (
          <li key={merged} class="panel-links">
            <code>{merged}</code>
            <button type="button" disabled={isBusy} onClick={() => split(merged)} aria-label={`Split ${merged}`}>
              Split
            </button>
          </li>
        ))}
      </ul>
    </section>
  )
}

/** A button that merges the chosen findings of a list. */
export function MergeChosen({ ids, merged }: { readonly ids: readonly string[]; readonly merged: () => void }) {
  const { run, isBusy, alert } = useChange()
  const [findingId, ...findingIds] = ids
  if (findingId === undefined || findingIds.length === 0) return null
  const merge = () =>
    void run(async () => {
      await mergeFindings({ findingId, mergeFindingsRequest: { findingIds } })
      merged()
    })
  return (
    <p class="panel-links">
      <button type="button" disabled={isBusy} onClick={merge}>
        Merge {ids.length} findings
      </button>
      {alert}
    </p>
  )
}

/** Runs one change at a time, and shows why it failed. */
function useChange() {
  const [fault, setFault] = useState<Fault>()
  const [isBusy, setBusy] = useState(false)
  const run = async (change: () => Promise<void>) => {
    setBusy(true)
    setFault(undefined)
    await change().catch(error => setFault(faultOf(error)))
    setBusy(false)
  }
  const alert = fault && (
    <span role="alert" class="fault">
      This could not be done: {fault.message}.
    </span>
  )
  return { run, isBusy, alert }
}
