/** `true` means healthy, and so does a note for operators. `false`, or a text with the cause, means unhealthy. */
export type Health = boolean | string | { readonly note: string }
