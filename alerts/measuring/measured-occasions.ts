import type { CalledKind, Occasion } from '../../schemas/records/alerts.ts'
import { occasionId } from '../../shared/ids/occasion-id.ts'
import type { MeasuredKind } from './measures.ts'
import { subjectKey, type Transition, type Transitions } from './transitions.ts'

/** A kind of events that a rule of a workspace measures. */
interface OfWorkspace extends Pick<MeasuredKind, 'rule' | 'kind'> {
  readonly workspaceId: string
}

/** Returns the occasions of conditions that begin and end. The same instant has the same ids. */
export function measuredOccasions(of: OfWorkspace, { begun, ended }: Transitions): Occasion[] {
  return [...begun.map(transition => occasionOf(of, transition, false)), ...ended.map(one => occasionOf(of, one, true))]
}

function occasionOf(
  { workspaceId, rule, kind }: OfWorkspace,
  { atMs, subject, measured }: Transition,
  resolved: boolean,
): Occasion {
  const condition = JSON.stringify([rule.name, subjectKey(subject)])
  const common = {
    id: occasionId([workspaceId, condition, kind, resolved ? `${atMs} ended` : atMs]),
    ...{ workspaceId, at: new Date(atMs).toISOString(), ruleName: rule.name, measured },
    ...(resolved && { resolved }),
  }
  const { findingId, surfaceId, service, environment } = subject
  if (isOfFinding(kind)) return { ...common, kind, findingId: findingId ?? '' }
  return {
    ...common,
    kind: kind as Exclude<CalledKind, `finding.${string}`>,
    ...(surfaceId !== undefined && { surfaceId }),
    ...(service !== undefined && { service }),
    ...(environment !== undefined && { environment }),
  }
}

function isOfFinding(kind: CalledKind): kind is Extract<CalledKind, `finding.${string}`> {
  return kind.startsWith('finding.')
}
