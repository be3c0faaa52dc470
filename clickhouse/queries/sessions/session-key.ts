export interface SessionKey {
  readonly workspaceId: string
  readonly sessionId: string
}

/** The beginning of the primary key of every table of sessions: the read touches the granules of this one. */
export const OF_SESSION = 'workspace_id = {workspaceId: String} AND session_id = {sessionId: String}'
