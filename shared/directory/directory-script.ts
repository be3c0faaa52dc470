import { scriptsIn } from '../runtime/redis/script.ts'

/** Reads a script of the directory by its name in `scripts/`. */
export const directoryScript = scriptsIn(new URL('scripts/', import.meta.url))
