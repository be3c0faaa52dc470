import { DirectoryRecordError } from '../../shared/directory/record.ts'
import { describeError, TransientError } from '../../shared/runtime/errors.ts'

/**
 * Returns the result of a query of the directory. Throws a DirectoryRecordError for a record that breaks its schema, and a
 * TransientError for every other failure, because Redis becomes available again.
 */
export async function queryDirectory<T>(result: Promise<T>): Promise<T> {
  try {
    return await result
  } catch (error) {
    if (error instanceof DirectoryRecordError) throw error
    throw new TransientError(`the directory is unavailable: ${describeError(error)}`, { cause: error })
  }
}
