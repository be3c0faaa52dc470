import type { Permission } from '../api/generated/client.ts'

/** Each permission for people. */
const PERMISSIONS: Readonly<Record<Permission, string>> = {
  'org:findings:read': 'see findings',
  'org:findings:write': 'work on findings',
  'org:telemetry:read': 'see traces, logs, metrics, dead letters',
  'org:telemetry:admin': 'replay and purge dead letters, erase, change retention',
  'org:sessions:read': 'see sessions and replays',
  'org:releases:read': 'see releases',
  'org:surfaces:read': 'see surfaces and their keys',
  'org:surfaces:write': 'create surfaces and keys',
  'org:surfaces:delete': 'delete surfaces, revoke keys',
  'org:members:read': 'see members and changes',
  'org:members:write': 'invite, change and remove members',
  'org:workspace_auth:write': 'manage API keys',
}
const ALL = Object.keys(PERMISSIONS) as Permission[]

/** Boxes for permissions, named `permissions`. */
export function PermissionBoxes({ chosen = [] }: { readonly chosen?: readonly Permission[] }) {
  return (
    <fieldset class="boxes">
      <legend>Permissions</legend>
      {ALL.map(permission => (
        <label key={permission} class="check">
          <input type="checkbox" name="permissions" value={permission} defaultChecked={chosen.includes(permission)} />
          <span>
            <code>{permission}</code> <span class="quiet">{PERMISSIONS[permission]}</span>
          </span>
        </label>
      ))}
    </fieldset>
  )
}

/** Returns the permissions whose boxes are checked. */
export function permissionsOf(fields: FormData): Permission[] {
  const chosen = fields.getAll('permissions')
  return ALL.filter(permission => chosen.includes(permission))
}

/** Permissions in words, all of them shortened to one. */
export function Permissions({ of }: { readonly of: readonly Permission[] }) {
  if (of.length === ALL.length) return <span class="tag">all permissions</span>
  if (of.length === 0) return <span class="tag doubt">no permissions</span>
  return (
    <span class="tags">
      {of.map(permission => (
        <span key={permission} class="tag" title={PERMISSIONS[permission]}>
          {permission.replace(/^org:/, '')}
        </span>
      ))}
    </span>
  )
}
