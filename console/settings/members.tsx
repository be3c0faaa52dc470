import { addMember, changeMember, listMembers, type Member, removeMember } from '../api/generated/client.ts'
import { useLoad } from '../state/load.ts'
import { given, place, present } from '../state/router.ts'
import { ChangeForm, Confirmed, Field } from '../ui/changes.tsx'
import { Pages } from '../ui/filters.tsx'
import { Shown } from '../ui/states.tsx'
import { Time } from '../ui/text.tsx'
import { PermissionBoxes, Permissions, permissionsOf } from './permissions.tsx'

const PAGE_SIZE = 50

/** The members of the workspace, and what each of them may do. */
export function Members() {
  const { query } = place.value
  const loaded = useLoad(`members ${query}`, signal =>
    listMembers({ limit: PAGE_SIZE, ...given(query, 'cursor') }, { signal }),
  )
  return (
    <section>
      <h2>Members</h2>
      <details>
        <summary>Invite a member</summary>
        <ChangeForm
          submit="Invite"
          change={(fields, signal) => {
            const text = (name: string) => String(fields.get(name) ?? '').trim()
            const addMemberRequest = {
              userId: text('userId'),
              permissions: permissionsOf(fields),
              ...present({ name: text('name'), email: text('email') }),
            }
            return addMember({ addMemberRequest }, { signal })
          }}
          onDone={loaded.again}
        >
          <Field name="userId" label="Identity" isRequired hint="The claim sub of the tokens of this user." />
          <Field name="name" label="Name" />
          <Field name="email" label="Email" />
          <PermissionBoxes />
        </ChangeForm>
      </details>
      <Shown loaded={loaded} what="members">
        {({ members, nextCursor }) => (
          <>
            <ul class="cards">
              {members.map(member => (
                <MemberCard key={member.id} member={member} changed={loaded.again} />
              ))}
            </ul>
            <Pages nextCursor={nextCursor} />
          </>
        )}
      </Shown>
    </section>
  )
}

function MemberCard({ member, changed }: { readonly member: Member; readonly changed: () => void }) {
  const { id: userId, name, email, permissions, invitedAt } = member
  const shown = name ?? email ?? userId
  return (
    <li>
      <div class="card-head">
        <h3>{shown}</h3>
        <span class="quiet">
          {[...new Set([email, userId])].filter(text => text !== undefined && text !== shown).join(', ')}{' '}
          {invitedAt && (
            <>
              invited <Time iso={invitedAt} />
            </>
          )}
        </span>
        <span class="card-actions">
          <Confirmed
            label="Remove"
            what={shown}
            title={`Remove ${shown}?`}
            word={userId}
            change={signal => removeMember({ userId, keys: 'revoke' }, { signal })}
            onDone={changed}
          >
            <p>
              The user sees nothing of this workspace any more. API keys and secret keys that the user has made are
              revoked; public keys stay, because they are on live pages.
            </p>
          </Confirmed>
        </span>
      </div>
      <Permissions of={permissions} />
      <details>
        <summary>
          Change permissions<span class="hidden"> of {shown}</span>
        </summary>
        <ChangeForm
          key={permissions.join()}
          submit="Change permissions"
          change={(fields, signal) =>
            changeMember({ userId, changeMemberRequest: { permissions: permissionsOf(fields) } }, { signal })
          }
          onDone={changed}
        >
          <PermissionBoxes chosen={permissions} />
        </ChangeForm>
      </details>
    </li>
  )
}
