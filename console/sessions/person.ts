/** Returns what a person is called: by the name, else the email, else the identifier. */
export function personOf(identity: {
  readonly identifier: string
  readonly name?: string | undefined
  readonly email?: string | undefined
}): string {
  return identity.name ?? identity.email ?? identity.identifier
}
