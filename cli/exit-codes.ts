/** How a command ends; its help says so. */
export const EXIT = { done: 0, failed: 1, usage: 2, notFound: 3 } as const
export type ExitCode = (typeof EXIT)[keyof typeof EXIT]
