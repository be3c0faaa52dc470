import { DirectoryRecordError } from '../../shared/directory/record.ts'
import { describeError, TransientError } from '../../shared/runtime/errors.ts'

/** What the directory answers. Redis being away passes, and is a TransientError; a record that is not ours does not. */
export async function askDirectory<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer
  } catch (error) {
    if (error instanceof DirectoryRecordError) throw error
    throw new TransientError(`the directory cannot be asked: ${describeError(error)}`, { cause: error })
  }
}
