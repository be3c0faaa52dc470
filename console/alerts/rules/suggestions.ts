import { listFindings, listServices, listSuggestions, listSurfaces, listVersions } from '../../api/generated/client.ts'
import { useLoad } from '../../state/load.ts'
import { timesOf } from '../../state/time-range.ts'
import type { ListCondition } from '../kinds.ts'

const SHOWN = 100

/** A surface to choose. */
export interface NamedSurface {
  readonly id: string
  readonly name: string
}

/** Reads the surfaces of the workspace. */
export function useSurfaces(): readonly NamedSurface[] {
  return useLoad('surfaces', signal => listSurfaces({ limit: SHOWN }, { signal })).value?.surfaces ?? []
}

type Suggestions = Readonly<Record<Exclude<ListCondition, 'surfaces'>, readonly string[]>>
const NONE: Suggestions = { services: [], environments: [], releases: [], types: [] }

/** Reads values for conditions from the telemetry of the last seven days. Lists that cannot be read suggest nothing. */
export function useSuggestions(): Suggestions {
  const loaded = useLoad('suggestions of alerts', async (signal): Promise<Suggestions> => {
    const range = timesOf(new URLSearchParams({ from: 'now-7d' }))
    const [services, versions, environments, findings] = await Promise.all([
      listServices({ limit: SHOWN, ...range }, { signal }).catch(() => undefined),
      listVersions(range, { signal }).catch(() => undefined),
      listSuggestions({ $of: 'value', key: 'deployment.environment.name', limit: SHOWN, ...range }, { signal }).catch(
        () => undefined,
      ),
      listFindings({ limit: SHOWN }, { signal }).catch(() => undefined),
    ])
    return {
      services: distinct((services?.services ?? []).map(({ name }) => name)),
      environments: distinct(environments?.suggestions ?? []),
      releases: distinct((versions?.versions ?? []).map(({ version }) => version)),
      types: distinct((findings?.findings ?? []).map(({ type }) => type)),
    }
  })
  return loaded.value ?? NONE
}

function distinct(values: readonly string[]): string[] {
  return [...new Set(values.filter(value => value !== ''))]
}
